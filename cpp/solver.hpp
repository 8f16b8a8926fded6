// The coordinate perturbation method (CPM): sweeps over every entry of every member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dispatch.hpp"
#include "packed.hpp"

namespace qms22 {

struct SweepResult {
    double change;          // of the loss; never positive
    std::int64_t accepted;  // steps taken
};

class Solver {
  public:
    virtual ~Solver() = default;
    // Tries every entry once. A sweep is a function of the coefficients (m, q, p + 1), b last,
    // alone: from the same ones it ends in the same ones.
    virtual SweepResult sweep() = 0;
    virtual const std::vector<double>& coefficients() const = 0;
    // Row-trials so far, and how many of them took the slow path.
    virtual std::int64_t row_trials() const = 0;
    virtual std::int64_t slow_row_trials() const = 0;
};

std::unique_ptr<Solver> make_solver(const Task& task, std::vector<double> coefficients,
                                    bool single_precision, std::size_t n_threads,
                                    const InstructionSet& set);

// f_i(x) of every row: values (n, m).
void member_values(const StridedTable& x, std::size_t n_members, std::size_t n_components,
                   const double* coefficients, double floor, const InstructionSet& set,
                   double* values);

}  // namespace qms22
