// Bundles of columns; see `Bundle`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "packed.hpp"

namespace qms22 {

// All columns of a task, b's included, as bundles; many are of one column.
template <class Real>
class Bundles {
  public:
    explicit Bundles(const PackedRows<Real>& packed)
        : all_(split(packed.view(), packed.n_rows())), rows_(packed.view()) {
        std::size_t n_sums = 0;
        for (const Bundle<Real>& bundle : all_) n_sums += bundle.size > 1;
        if (!n_sums) return;
        sums_ = Aligned<Real>(n_sums + 2, rows_.stride);
        owners_ = Aligned<std::int64_t>(n_sums, rows_.stride);
        Real* sum = sums_.get();
        std::int64_t* owner = owners_.get();
        for (Bundle<Real>& bundle : all_) {
            if (bundle.size == 1) continue;
            add_up(bundle, rows_.stride, packed.n_rows(), sum, owner);
            // Bundles with equal sums share them: their trials have the same changes of rows.
            const auto twin =
                std::find_if(all_.begin(), all_.end(), [&](const Bundle<Real>& other) {
                    return other.owner && std::equal(sum, sum + packed.n_rows(), other.x);
                });
            bundle.x = twin == all_.end() ? sum : twin->x;
            bundle.owner = owner;
            if (bundle.x == sum) sum += rows_.stride;
            owner += rows_.stride;
        }
        rows_.kept_plus = sum;
        rows_.kept_minus = sum + rows_.stride;
        rows_.bundles = all_.data();
        rows_.n_bundles = all_.size();
    }

    const std::vector<Bundle<Real>>& all() const { return all_; }
    // The packed rows, with the bundles where one has several columns.
    const KernelRows<Real>& rows() const { return rows_; }

  private:
    // A bundle ends before the first column that overlaps one of its columns. b is alone, since its
    // step has another size.
    static std::vector<Bundle<Real>> split(const KernelRows<Real>& rows, std::size_t n_rows) {
        const std::vector<std::size_t> after = last_overlaps(rows, n_rows);
        std::vector<Bundle<Real>> all;
        for (std::size_t c = 0; c <= rows.n_features; ++c) {
            if (c == 0 || c == rows.n_features || !kHasBundles<Real> ||
                after[c] > all.back().first || all.back().size == kMaxBundle)
                all.push_back({c, 0, rows.x + c * rows.stride, nullptr});
            ++all.back().size;
        }
        return all;
    }

    // For every column, one more than the last column before it that differs from 0 in one of the
    // same rows, or 0. Tile by tile, as in `pack`.
    static std::vector<std::size_t> last_overlaps(const KernelRows<Real>& rows,
                                                  std::size_t n_rows) {
        constexpr std::size_t kTile = 64;
        std::vector<std::size_t> after(rows.n_features + 1, 0);
        for (std::size_t begin = 0; begin < n_rows; begin += kTile) {
            const std::size_t size = std::min(kTile, n_rows - begin);
            std::size_t next[kTile] = {};
            for (std::size_t c = 0; c < rows.n_features; ++c) {
                const Real* const x = rows.x + c * rows.stride + begin;
                for (std::size_t i = 0; i < size; ++i) {
                    if (x[i] == 0) continue;
                    after[c] = std::max(after[c], next[i]);
                    next[i] = c + 1;
                }
            }
        }
        return after;
    }

    static void add_up(const Bundle<Real>& bundle, std::size_t stride, std::size_t n_rows,
                       Real* sum, std::int64_t* owner) {
        std::fill_n(sum, n_rows, Real(0));
        std::fill_n(owner, n_rows, std::int64_t(0));
        for (std::size_t k = 0; k < bundle.size; ++k) {
            const Real* const x = bundle.x + k * stride;
            for (std::size_t i = 0; i < n_rows; ++i) {
                sum[i] += x[i];
                if (x[i] != 0) owner[i] = std::int64_t(k);
            }
        }
    }

    std::vector<Bundle<Real>> all_;
    Aligned<Real> sums_;
    Aligned<std::int64_t> owners_;
    KernelRows<Real> rows_;
};

}  // namespace qms22
