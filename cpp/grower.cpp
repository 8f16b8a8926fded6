#include "grower.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace qms22 {
namespace {

// Values of leaves are multiples of this, so that sums of them are exact in any order.
constexpr double kValueUnit = 1.0 / (1U << 20U);
constexpr std::uint8_t kLastBin = 255;

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

Weights balanced(const BinnedRows& rows, const std::uint16_t* labels) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < rows.n_rows; ++i) sum += labels[i];
    const double batch = static_cast<double>(sum) / kOne;
    const double normal = static_cast<double>(rows.n_rows * kOne - sum) / kOne;
    return {normal > 0 ? 1 / normal : 0, batch > 0 ? 1 / batch : 0};
}

}  // namespace

Grower::Grower(const BinnedRows& rows, const std::uint16_t* labels, const ForestOptions& options)
    : total(rows.n_rows),
      n_out(rows.n_rows),
      rows_(rows),
      labels_(labels),
      options_(options),
      weights_(balanced(rows, labels)),
      drawn_(rows.n_rows),
      bag_(rows.n_rows),
      out_(rows.n_rows),
      scratch_(rows.n_rows),
      sums_(rows.n_rows),
      scratch_sums_(rows.n_rows),
      bins_(rows.n_rows),
      best_bins_(rows.n_rows),
      features_(rows.n_features) {}

TreeNodes Grower::grow(std::size_t tree) {
    Random random(options_.seed, tree);
    TreeNodes nodes;
    add_leaf(nodes);
    std::iota(features_.begin(), features_.end(), std::size_t{0});
    std::vector<Node> open = {draw_bag(random)};
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

void Grower::add_leaf(TreeNodes& nodes) {
    nodes.feature.push_back(0);
    nodes.child.push_back(static_cast<std::int32_t>(nodes.child.size()));
    nodes.threshold.push_back(kLastBin);
    nodes.value.push_back(0);
}

Node Grower::draw_bag(Random& random) {
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

bool Grower::may_be_split(const Node& node) const {
    const ClassSums classes(node.sums, weights_);
    return node.end - node.begin >= 2 * options_.min_leaf && classes.normal > 0 &&
           classes.batch > 0;
}

void Grower::set_value(TreeNodes& nodes, const Node& node) {
    const ClassSums classes(node.sums, weights_);
    const double share = classes.batch / (classes.normal + classes.batch);
    const double value = std::round(share / kValueUnit) * kValueUnit;
    nodes.value[node.number] = static_cast<float>(value);
    for (std::size_t i = node.out_begin; i < node.out_end; ++i) {
        total[out_[i]] += value;
        ++n_out[out_[i]];
    }
}

Split Grower::best_split(const Node& node, Random& random, std::size_t& n_constant) {
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

Split Grower::try_split(const Node& node, std::size_t feature, std::uint8_t threshold) const {
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

std::size_t Grower::part_bag(const Node& node, std::uint8_t threshold) {
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

std::size_t Grower::part_out(const Node& node, const Split& split) {
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

}  // namespace qms22
