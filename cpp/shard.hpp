// A shard: whole blocks of a task's rows. A driver adds up the sums of many shards and decides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dispatch.hpp"
#include "packed.hpp"

namespace qms22 {

// The outcome of a trial, settled or presumed: +1 or -1 for the direction kept, 0 for neither.
using Decision = std::int8_t;

// The rows must be in the order of the whole task sorted by group, and every block except the
// task's last must be full: then the sums of a block have the same bits here and in a `Solver`.
class Shard {
  public:
    virtual ~Shard() = default;
    // Starts a sweep from these coefficients (m, q, p + 1), b last.
    virtual void restart(std::vector<double> coefficients) = 0;
    // Applies the settled decisions on the first trials of the last visit and tries the entries
    // after them: one entry on the settled state, then one per presumed decision on the state to
    // which that decision leads. A member other than the last one starts at its first entry.
    // Returns the changes of each trial, block by block.
    virtual std::vector<Change> visit(std::size_t member, const std::vector<Decision>& settled,
                                      const std::vector<Decision>& presumed) = 0;
    virtual std::size_t n_blocks() const = 0;
    virtual std::array<std::size_t, 3> shape() const = 0;  // of A: (m, q, p)
};

std::unique_ptr<Shard> make_shard(const Task& task, bool single_precision, std::size_t n_threads,
                                  const InstructionSet& set);

}  // namespace qms22
