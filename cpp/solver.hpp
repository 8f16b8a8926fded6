// The coordinate perturbation method (CPM): sweeps over every entry of every member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "dispatch.hpp"
#include "kernel.hpp"

namespace qms22 {

// A table of doubles seen through strides (counted in elements), whatever its memory order.
struct Table {
    const double* data;
    std::size_t n_rows, n_columns;
    std::ptrdiff_t row_stride, column_stride;

    double operator()(std::size_t row, std::size_t column) const {
        return data[std::ptrdiff_t(row) * row_stride + std::ptrdiff_t(column) * column_stride];
    }
};

// Cache-line aligned, uninitialised memory.
template <class T>
class Aligned {
  public:
    explicit Aligned(std::size_t size = 0)
        : data_(size ? static_cast<T*>(::operator new(size * sizeof(T), kAlignment)) : nullptr) {}
    T* get() const { return data_.get(); }
    T& operator[](std::size_t i) const { return data_.get()[i]; }

  private:
    static constexpr std::align_val_t kAlignment{kLaneBytes};
    struct Free {
        void operator()(T* data) const { ::operator delete(data, kAlignment); }
    };
    std::unique_ptr<T, Free> data_;
};

// The QMS task in plain numbers: which rows weigh how much inside which member set.
struct Problem {
    Table x;                           // (n, p)
    const std::int32_t* group;         // (n)
    std::size_t n_groups;
    const double* group_weight;        // (m, n_groups)
    const double* row_weight;          // (n) or null
    std::size_t n_members, n_components;
    double alpha, floor, tolerance, step_a, step_b;
};

struct SweepResult {
    double change;          // of the loss; never positive
    std::int64_t accepted;  // steps taken
};

class Solver {
  public:
    virtual ~Solver() = default;
    // One sweep over all entries. The coefficients (m, q, p + 1), b last, are all the state there
    // is: a sweep started from the same ones ends in the same ones.
    virtual SweepResult sweep() = 0;
    virtual const std::vector<double>& coefficients() const = 0;
    // Row-trials so far, and how many of them took the O(m) road.
    virtual std::int64_t row_trials() const = 0;
    virtual std::int64_t slow_row_trials() const = 0;
};

std::unique_ptr<Solver> make_solver(const Problem& problem, std::vector<double> coefficients,
                                    bool single_precision, std::size_t n_threads,
                                    const InstructionSet& set);

// f_i(x) of every row: values (n, m).
void member_values(const Table& x, std::size_t n_members, std::size_t n_components,
                   const double* coefficients, double floor, const InstructionSet& set,
                   double* values);

}  // namespace qms22
