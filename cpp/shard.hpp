// Whole blocks of a task's rows, for a driver that adds up the sums of many shards and decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dispatch.hpp"
#include "packed.hpp"

namespace qms22 {

// What became of a trial, or is presumed to: +1 and -1 for the direction kept, 0 for neither.
using Decision = std::int8_t;

// The rows have to come in the order of the whole task sorted by group, and every block but the
// task's last has to be full: then the sums of a block are the same bits here and in a `Solver`.
class Shard {
  public:
    virtual ~Shard() = default;
    // Goes to these coefficients (m, q, p + 1), b last, before the first entry of a sweep.
    virtual void restart(std::vector<double> coefficients) = 0;
    // Takes in what became of trials of the last visit, as many as were settled, and tries the
    // entries after them: one entry on the settled state, then one per presumed decision on the
    // state to which it would lead. Another member than before is entered at its first entry.
    // Gives the changes of each trial, block by block.
    virtual std::vector<Change> visit(std::size_t member, const std::vector<Decision>& settled,
                                      const std::vector<Decision>& presumed) = 0;
    virtual std::size_t n_blocks() const = 0;
};

std::unique_ptr<Shard> make_shard(const Task& task, bool single_precision, std::size_t n_threads,
                                  const InstructionSet& set);

}  // namespace qms22
