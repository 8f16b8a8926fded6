// Grows extremely randomised trees, one after the other; see forest.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "forest.hpp"

namespace qms22 {

// splitmix64, a sequence of its own for every tree.
class Random {
  public:
    Random(std::uint64_t seed, std::uint64_t tree) : state_(seed) {
        state_ = next() + tree;
        state_ = next();
    }

    // A number below n, with n < 2^32.
    std::size_t below(std::size_t n) {
        return static_cast<std::size_t>((next() >> 32U) * n >> 32U);
    }

  private:
    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
        z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9;
        z = (z ^ (z >> 27U)) * 0x94D049BB133111EB;
        return z ^ (z >> 31U);
    }

    std::uint64_t state_;
};

// Two sums over rows in one integer, so that one addition updates both: how often rows were drawn
// (upper 26 bits), and the same times their labels (lower 38 bits).
using Sums = std::uint64_t;
constexpr unsigned kLabelBits = 38;

struct Weights {
    double normal, batch;  // of a row of class 0 and 1: both classes weigh 1 in all
};

// A node to be split: its places in the lists of rows in the bag and out of it.
struct Node {
    std::int32_t number;
    std::size_t begin, end, out_begin, out_end;
    Sums sums;
    std::size_t n_constant;  // columns known to be constant in it
};

struct Split {
    std::size_t feature = 0;
    std::uint8_t threshold = 0;
    Sums left = 0;
    double purity = -1;  // below that of every split
};

// Grows one tree after the other, and adds up the values of rows out of the bag.
class Grower {
  public:
    Grower(const BinnedRows& rows, const std::uint16_t* labels, const ForestOptions& options);

    // A tree on a bootstrap sample of the rows.
    TreeNodes grow(std::size_t tree);

    std::vector<double> total;
    std::vector<std::uint32_t> n_out;

  private:
    static void add_leaf(TreeNodes& nodes);

    // Draws as many rows as there are, with replacement. Returns the root.
    Node draw_bag(Random& random);

    bool may_be_split(const Node& node) const;

    void set_value(TreeNodes& nodes, const Node& node);

    // The best of one random threshold in each of max_features random columns, and the bins of its
    // column in best_bins_. Columns that are constant in the node count, except that at least one
    // is tried that is not. Constant columns come first in features_; deeper nodes leave those of
    // this node in their places.
    Split best_split(const Node& node, Random& random, std::size_t& n_constant);

    Split try_split(const Node& node, std::size_t feature, std::uint8_t threshold) const;

    // Moves rows of the right child behind those of the left one. Both keep their order. Returns
    // where the right ones begin. No branch depends on the rows: half of them would be
    // mispredicted.
    std::size_t part_bag(const Node& node, std::uint8_t threshold);

    std::size_t part_out(const Node& node, const Split& split);

    const BinnedRows& rows_;
    const std::uint16_t* labels_;
    const ForestOptions& options_;
    const Weights weights_;
    std::vector<std::uint16_t> drawn_;  // how often the tree has drawn a row
    std::vector<std::uint32_t> bag_, out_, scratch_;
    std::vector<Sums> sums_, scratch_sums_;  // of the rows in bag_
    std::vector<std::uint8_t> bins_, best_bins_;
    std::vector<std::size_t> features_;
};

}  // namespace qms22
