// Extremely randomised trees on binned columns that tell two classes apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace qms22 {

// A label of 1 as an integer. Labels are shares of a row that count as class 1, and integers make
// sums exact in any order.
inline constexpr std::uint32_t kOne = 1U << 12U;
// With more rows the sums of a node would not fit into 64 bits.
inline constexpr std::size_t kMostForestRows = (std::size_t{1} << 26U) - 1;

// Columns of bin numbers (n_features, n_rows), one column after the other.
struct BinnedRows {
    const std::uint8_t* bins;
    std::size_t n_rows, n_features;
};

struct ForestOptions {
    std::size_t n_trees;
    std::size_t max_features;  // columns to try in a node
    std::size_t min_leaf;      // fewest different rows in a leaf
    std::uint64_t seed;
    std::size_t n_threads;  // does not change the result
};

// A row in node i of a tree goes to node child[i] if its bin of column feature[i] is at most
// threshold[i], else to the next node. A leaf is its own child, with a threshold that no bin
// exceeds.
struct TreeNodes {
    std::vector<std::int32_t> feature, child;
    std::vector<std::uint8_t> threshold;
    std::vector<float> value;  // the share of class 1 if both classes have the same weight
};

struct Forest {
    TreeNodes nodes;                       // of all trees, one after the other
    std::vector<std::int64_t> first_node;  // of every tree, and the number of all nodes
    // Mean value of every row over the trees that did not learn from it; 1/2 without such trees.
    std::vector<double> out_of_bag;
};

// Trees on bootstrap samples of the rows. Tree i draws from a random sequence that depends on the
// seed and i alone, and all sums are exact: the number of threads does not change a bit.
Forest grow_forest(const BinnedRows& rows, const std::uint16_t* labels,
                   const ForestOptions& options);

// The nodes of a forest as plain arrays; see `Forest`.
struct ForestView {
    const std::int32_t *feature, *child;
    const std::uint8_t* threshold;
    const float* value;
    const std::int64_t* first_node;
    std::size_t n_trees;
};

// The mean value of every row over all trees.
void forest_scores(const BinnedRows& rows, const ForestView& forest, std::size_t n_threads,
                   double* scores);

}  // namespace qms22
