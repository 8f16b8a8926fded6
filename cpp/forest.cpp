#include "forest.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

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

// Adds the values of the leaves of one tree to the scores of a group of rows.
void add_values(const BinnedRows& rows, std::size_t first, std::size_t size,
                const ForestView& forest, std::size_t tree, double* scores) {
    const std::int64_t root = forest.first_node[tree];
    const std::int32_t* const feature = forest.feature + root;
    const std::int32_t* const child = forest.child + root;
    const std::uint8_t* const threshold = forest.threshold + root;
    std::int32_t place[kGroup] = {};
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t i = 0; i < size; ++i) {
            const std::int32_t from = place[i];
            const std::uint8_t bin = rows.bins[feature[from] * rows.n_rows + first + i];
            place[i] = child[from] + (bin > threshold[from] ? 1 : 0);
            moved |= place[i] != from;
        }
    }
    for (std::size_t i = 0; i < size; ++i)
        scores[first + i] += static_cast<double>(forest.value[root + place[i]]);
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
    run_team(n_threads, [&](std::size_t rank, std::size_t n_ranks) {
        const std::size_t begin = n * rank / n_ranks, end = n * (rank + 1) / n_ranks;
        std::fill(scores + begin, scores + end, 0.0);
        for (std::size_t tree = 0; tree < forest.n_trees; ++tree)
            for (std::size_t first = begin; first < end; first += kGroup)
                add_values(rows, first, std::min(kGroup, end - first), forest, tree, scores);
        for (std::size_t i = begin; i < end; ++i) scores[i] /= static_cast<double>(forest.n_trees);
    });
}

}  // namespace qms22
