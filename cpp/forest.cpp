#include "forest.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <numeric>
#include <utility>

#include "team.hpp"

namespace qms22 {
namespace {

// Values of leaves are multiples of this, so that sums of them are exact in any order.
constexpr double kValueUnit = 1.0 / (1U << 20U);
constexpr std::uint8_t kLastBin = 255;

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

struct ClassSums {
    ClassSums(Sums sums, const Weights& weights) {
        const double drawn = static_cast<double>(sums >> kLabelBits);
        const double labels = static_cast<double>(sums & ((Sums{1} << kLabelBits) - 1)) / kOne;
        normal = (drawn - labels) * weights.normal;
        batch = labels * weights.batch;
    }
    // The part of Gini's impurity, times the weight of the node, that a split can change.
    double purity() const { return (normal * normal + batch * batch) / (normal + batch); }

    double normal, batch;
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

Weights balanced(const BinnedRows& rows, const std::uint16_t* labels) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < rows.n_rows; ++i) sum += labels[i];
    const double batch = static_cast<double>(sum) / kOne;
    const double normal = static_cast<double>(rows.n_rows * kOne - sum) / kOne;
    return {normal > 0 ? 1 / normal : 0, batch > 0 ? 1 / batch : 0};
}

// Grows one tree after the other, and adds up the values of rows out of the bag.
class Grower {
  public:
    Grower(const BinnedRows& rows, const std::uint16_t* labels, const ForestOptions& options)
        : total(rows.n_rows),
          n_out(rows.n_rows),
          rows_(rows),
          labels_(labels),
          options_(options),
          weights_(labels == nullptr ? Weights{0, 0} : balanced(rows, labels)),
          drawn_(rows.n_rows),
          bag_(rows.n_rows),
          out_(rows.n_rows),
          scratch_(rows.n_rows),
          sums_(rows.n_rows),
          scratch_sums_(rows.n_rows),
          bins_(rows.n_rows),
          best_bins_(rows.n_rows),
          features_(rows.n_features) {}

    // A tree on a bootstrap sample of the rows.
    TreeNodes grow(std::size_t tree) {
        Random random(options_.seed, tree);
        return grow_from(draw_bag(random), random);
    }

    // A tree on the rows that have a role in it. Writes the values of the others.
    void grow_by_roles(std::size_t tree, const std::uint8_t* roles, float* values) {
        Random random(options_.seed, tree);
        values_ = values;
        grow_from(take_roles(roles), random);
    }

    std::vector<double> total;
    std::vector<std::uint32_t> n_out;

  private:
    TreeNodes grow_from(const Node& root, Random& random) {
        TreeNodes nodes;
        add_leaf(nodes);
        std::iota(features_.begin(), features_.end(), std::size_t{0});
        std::vector<Node> open = {root};
        while (!open.empty()) {
            const Node node = open.back();
            open.pop_back();
            std::size_t n_constant = node.n_constant;
            Split split;
            if (may_be_split(node)) split = best_split(node, random, n_constant);
            if (split.purity < 0) {
                set_value(nodes, node);
                continue;
            }
            const auto left = static_cast<std::int32_t>(nodes.value.size());
            nodes.feature[node.number] = static_cast<std::int32_t>(split.feature);
            nodes.threshold[node.number] = split.threshold;
            nodes.child[node.number] = left;
            add_leaf(nodes);
            add_leaf(nodes);
            const std::size_t middle = part_bag(node, split.threshold);
            const std::size_t out_middle = part_out(node, split);
            open.push_back({left + 1, middle, node.end, out_middle, node.out_end,
                            node.sums - split.left, n_constant});
            open.push_back(
                {left, node.begin, middle, node.out_begin, out_middle, split.left, n_constant});
        }
        return nodes;
    }

    static void add_leaf(TreeNodes& nodes) {
        nodes.feature.push_back(0);
        nodes.child.push_back(static_cast<std::int32_t>(nodes.child.size()));
        nodes.threshold.push_back(kLastBin);
        nodes.value.push_back(0);
    }

    // Draws as many rows as there are, with replacement. Returns the root.
    Node draw_bag(Random& random) {
        const std::size_t n = rows_.n_rows;
        std::fill(drawn_.begin(), drawn_.end(), std::uint16_t{0});
        for (std::size_t i = 0; i < n; ++i) ++drawn_[random.below(n)];
        Node root = {0, 0, 0, 0, 0, 0, 0};
        for (std::size_t i = 0; i < n; ++i) {
            const auto row = static_cast<std::uint32_t>(i);
            const Sums times = drawn_[i];
            const Sums sums = (times << kLabelBits) + times * labels_[i];
            bag_[root.end] = out_[root.out_end] = row;
            sums_[root.end] = sums;
            root.sums += sums;
            root.end += times > 0 ? 1 : 0;
            root.out_end += times > 0 ? 0 : 1;
        }
        return root;
    }

    // Takes the rows with a role, each once; both classes weigh the same. Returns the root.
    Node take_roles(const std::uint8_t* roles) {
        Node root = {0, 0, 0, 0, 0, 0, 0};
        double normal = 0, batch = 0;
        for (std::size_t i = 0; i < rows_.n_rows; ++i) {
            const auto row = static_cast<std::uint32_t>(i);
            if (roles[i] == kOutOfBag) {
                out_[root.out_end++] = row;
                continue;
            }
            const bool is_batch = roles[i] == kBatch;
            (is_batch ? batch : normal) += 1;
            bag_[root.end] = row;
            sums_[root.end] = (Sums{1} << kLabelBits) + (is_batch ? kOne : 0);
            root.sums += sums_[root.end++];
        }
        weights_ = {normal > 0 ? 1 / normal : 0, batch > 0 ? 1 / batch : 0};
        return root;
    }

    bool may_be_split(const Node& node) const {
        const ClassSums classes(node.sums, weights_);
        return node.end - node.begin >= 2 * options_.min_leaf && classes.normal > 0 &&
               classes.batch > 0;
    }

    void set_value(TreeNodes& nodes, const Node& node) {
        const ClassSums classes(node.sums, weights_);
        const double weight = classes.normal + classes.batch;
        const double share = weight > 0 ? classes.batch / weight : 0.5;
        const double value = std::round(share / kValueUnit) * kValueUnit;
        nodes.value[node.number] = static_cast<float>(value);
        for (std::size_t i = node.out_begin; i < node.out_end; ++i) {
            total[out_[i]] += value;
            ++n_out[out_[i]];
            if (values_ != nullptr) values_[out_[i]] = static_cast<float>(value);
        }
    }

    // The best of one random threshold in each of max_features random columns, and the bins of its
    // column in best_bins_. Columns that are constant in the node count, except that at least one
    // is tried that is not. Constant columns come first in features_; deeper nodes leave those of
    // this node in their places.
    Split best_split(const Node& node, Random& random, std::size_t& n_constant) {
        Split best;
        const std::size_t size = node.end - node.begin;
        std::size_t n_known = n_constant, last = features_.size();
        bool tried_one = false;
        for (std::size_t n_drawn = 0;
             n_constant < last && (n_drawn < options_.max_features || !tried_one); ++n_drawn) {
            const std::size_t place = random.below(n_known + last - n_constant);
            if (place < n_known) {
                --n_known;
                continue;
            }
            std::size_t& feature = features_[n_constant + place - n_known];
            const std::uint8_t* const column = rows_.bins + feature * rows_.n_rows;
            std::uint8_t* const bins = bins_.data();
            const std::uint32_t* const bag = bag_.data() + node.begin;
            for (std::size_t i = 0; i < size; ++i) bins[i] = column[bag[i]];
            std::uint8_t low = kLastBin, high = 0;
            for (std::size_t i = 0; i < size; ++i) {
                low = std::min(low, bins[i]);
                high = std::max(high, bins[i]);
            }
            if (low == high) {
                std::swap(feature, features_[n_constant++]);
                continue;
            }
            tried_one = true;
            const auto threshold = static_cast<std::uint8_t>(low + random.below(high - low));
            const Split split = try_split(node, feature, threshold);
            if (split.purity > best.purity) {
                best = split;
                bins_.swap(best_bins_);
            }
            std::swap(feature, features_[--last]);
        }
        return best;
    }

    Split try_split(const Node& node, std::size_t feature, std::uint8_t threshold) const {
        Split split = {feature, threshold, 0, -1};
        const std::size_t size = node.end - node.begin;
        const Sums* const sums = sums_.data() + node.begin;
        std::size_t n_left = 0;
        for (std::size_t i = 0; i < size; ++i) {
            const Sums is_left = bins_[i] <= threshold ? 1 : 0;
            n_left += is_left;
            split.left += sums[i] & (0 - is_left);
        }
        if (n_left >= options_.min_leaf && size - n_left >= options_.min_leaf)
            split.purity = ClassSums(split.left, weights_).purity() +
                           ClassSums(node.sums - split.left, weights_).purity();
        return split;
    }

    // Moves rows of the right child behind those of the left one. Both keep their order. Returns
    // where the right ones begin. No branch depends on the rows: half of them would be
    // mispredicted.
    std::size_t part_bag(const Node& node, std::uint8_t threshold) {
        std::size_t n_right = 0;
        for (std::size_t i = node.begin; i < node.end; ++i) {
            bag_[i - n_right] = scratch_[n_right] = bag_[i];
            sums_[i - n_right] = scratch_sums_[n_right] = sums_[i];
            n_right += best_bins_[i - node.begin] > threshold ? 1 : 0;
        }
        std::copy_n(scratch_.begin(), n_right, bag_.data() + (node.end - n_right));
        std::copy_n(scratch_sums_.begin(), n_right, sums_.data() + (node.end - n_right));
        return node.end - n_right;
    }

    std::size_t part_out(const Node& node, const Split& split) {
        const std::uint8_t* const column = rows_.bins + split.feature * rows_.n_rows;
        std::size_t n_right = 0;
        for (std::size_t i = node.out_begin; i < node.out_end; ++i) {
            const std::uint32_t row = out_[i];
            out_[i - n_right] = scratch_[n_right] = row;
            n_right += column[row] > split.threshold ? 1 : 0;
        }
        std::copy_n(scratch_.begin(), n_right, out_.data() + (node.out_end - n_right));
        return node.out_end - n_right;
    }

    const BinnedRows& rows_;
    const std::uint16_t* labels_;
    const ForestOptions& options_;
    Weights weights_;
    float* values_ = nullptr;           // of the rows out of the bag, where they are wanted
    std::vector<std::uint16_t> drawn_;  // how often the tree has drawn a row
    std::vector<std::uint32_t> bag_, out_, scratch_;
    std::vector<Sums> sums_, scratch_sums_;  // of the rows in bag_
    std::vector<std::uint8_t> bins_, best_bins_;
    std::vector<std::size_t> features_;
};

// Calls work(rank) in every thread and throws the first error again, if there was one.
template <class Work>
void run_or_throw(std::size_t n_threads, const Work& work) {
    std::mutex mutex;
    std::exception_ptr error;
    run_team(n_threads, [&](std::size_t rank) {
        try {
            work(rank);
        } catch (...) {
            const std::scoped_lock lock(mutex);
            error = std::current_exception();
        }
    });
    if (error) std::rethrow_exception(error);
}

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
    run_or_throw(std::min(options.n_threads, options.n_trees), [&](std::size_t) {
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

void grow_by_roles(const BinnedRows& rows, const std::uint8_t* roles, const ForestOptions& options,
                   float* values) {
    std::atomic<std::size_t> next{0};
    run_or_throw(std::min(options.n_threads, options.n_trees), [&](std::size_t) {
        Grower grower(rows, nullptr, options);
        for (std::size_t tree = next++; tree < options.n_trees; tree = next++)
            grower.grow_by_roles(tree, roles + tree * rows.n_rows, values + tree * rows.n_rows);
    });
}

void forest_scores(const BinnedRows& rows, const ForestView& forest, std::size_t n_threads,
                   double* scores) {
    const std::size_t n = rows.n_rows;
    n_threads = std::max<std::size_t>(1, std::min(n_threads, n / kGroup));
    run_team(n_threads, [&](std::size_t rank) {
        const std::size_t begin = n * rank / n_threads, end = n * (rank + 1) / n_threads;
        std::fill(scores + begin, scores + end, 0.0);
        for (std::size_t tree = 0; tree < forest.n_trees; ++tree)
            for (std::size_t first = begin; first < end; first += kGroup)
                add_values(rows, first, std::min(kGroup, end - first), forest, tree, scores);
        for (std::size_t i = begin; i < end; ++i) scores[i] /= static_cast<double>(forest.n_trees);
    });
}

}  // namespace qms22
