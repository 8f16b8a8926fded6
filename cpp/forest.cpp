#include "forest.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <type_traits>

#include "grower.hpp"
#include "team.hpp"

namespace qms22 {
namespace {

template <class Value>
void append(std::vector<Value>& all, const std::vector<Value>& part) {
    all.insert(all.end(), part.begin(), part.end());
}

// Rows walk through a tree in groups of this size: the steps of one row wait for each other.
constexpr std::size_t kGroup = 16;

// What a step needs of a node, in one load of eight bytes.
struct Step {
    std::int32_t child;
    std::uint32_t split;  // feature * 256 + threshold
};

std::vector<Step> pack(const ForestView& forest) {
    std::vector<Step> steps(static_cast<std::size_t>(forest.first_node[forest.n_trees]));
    for (std::size_t i = 0; i < steps.size(); ++i)
        steps[i] = {forest.child[i],
                    static_cast<std::uint32_t>(forest.feature[i]) * 256U + forest.threshold[i]};
    return steps;
}

// Adds the values of the leaves of one tree to the scores of a group of `size` rows; a constant for
// full groups, which the compiler unrolls.
template <class Size>
void add_values(const BinnedRows& rows, std::size_t first, Size size, const Step* tree,
                const float* value, double* scores) {
    const std::uint8_t* const bins = rows.bins + first;
    std::int32_t place[kGroup] = {};
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t i = 0; i < size; ++i) {
            const Step step = tree[place[i]];
            const std::uint8_t bin = bins[(step.split >> 8U) * rows.n_rows + i];
            const std::int32_t next = step.child + (bin > (step.split & 255U) ? 1 : 0);
            moved |= next != place[i];
            place[i] = next;
        }
    }
    for (std::size_t i = 0; i < size; ++i)
        scores[first + i] += static_cast<double>(value[place[i]]);
}

}  // namespace

Forest grow_forest(const BinnedRows& rows, const std::uint16_t* labels,
                   const ForestOptions& options) {
    std::vector<TreeNodes> trees(options.n_trees);
    std::vector<double> total(rows.n_rows);
    std::vector<std::uint32_t> n_out(rows.n_rows);
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    run_team(std::min(options.n_threads, options.n_trees), [&](std::size_t, std::size_t) {
        Grower grower(rows, labels, options);
        for (std::size_t tree = next++; tree < trees.size(); tree = next++)
            trees[tree] = grower.grow(tree);
        const std::scoped_lock lock(mutex);
        for (std::size_t i = 0; i < rows.n_rows; ++i) {
            total[i] += grower.total[i];
            n_out[i] += grower.n_out[i];
        }
    });
    Forest forest;
    forest.first_node = {0};
    for (const TreeNodes& tree : trees) {
        append(forest.nodes.feature, tree.feature);
        append(forest.nodes.child, tree.child);
        append(forest.nodes.threshold, tree.threshold);
        append(forest.nodes.value, tree.value);
        forest.first_node.push_back(static_cast<std::int64_t>(forest.nodes.value.size()));
    }
    forest.out_of_bag.resize(rows.n_rows);
    for (std::size_t i = 0; i < rows.n_rows; ++i)
        forest.out_of_bag[i] = n_out[i] > 0 ? total[i] / n_out[i] : 0.5;
    return forest;
}

void forest_scores(const BinnedRows& rows, const ForestView& forest, std::size_t n_threads,
                   double* scores) {
    const std::size_t n = rows.n_rows;
    n_threads = std::max<std::size_t>(1, std::min(n_threads, n / kGroup));
    const std::vector<Step> steps = pack(forest);
    run_team(n_threads, [&](std::size_t rank, std::size_t n_ranks) {
        const std::size_t begin = n * rank / n_ranks, end = n * (rank + 1) / n_ranks;
        std::fill(scores + begin, scores + end, 0.0);
        for (std::size_t tree = 0; tree < forest.n_trees; ++tree) {
            const std::int64_t root = forest.first_node[tree];
            const Step* const tree_steps = steps.data() + root;
            std::size_t first = begin;
            for (; first + kGroup <= end; first += kGroup)
                add_values(rows, first, std::integral_constant<std::size_t, kGroup>{}, tree_steps,
                           forest.value + root, scores);
            add_values(rows, first, end - first, tree_steps, forest.value + root, scores);
        }
        for (std::size_t i = begin; i < end; ++i) scores[i] /= static_cast<double>(forest.n_trees);
    });
}

}  // namespace qms22
