// The sums of a pass over the rows of a block, in lanes.
//
// Included only by kernel.cpp, like lanes.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernel.hpp"
#include "lanes.hpp"

namespace qms22::QMS22_ISA {

// The number of vectors that have all lanes.
template <class Real>
constexpr std::size_t kParts = kLanes<Real> / kWidth<Real>;

// Something of kWidth rows for +step and for -step.
template <class Real>
struct Both {
    Vector<Real> plus, minus;
};

// Adds up the lanes of a block in a fixed order.
template <class Real>
inline double sum_lanes(const Real (&of_lane)[kLanes<Real>]) {
    double lanes[kLanes<Real>];
    for (std::size_t lane = 0; lane < kLanes<Real>; ++lane) lanes[lane] = double(of_lane[lane]);
    for (std::size_t half = kLanes<Real> / 2; half > 0; half /= 2)
        for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    return lanes[0];
}

template <class Real>
inline double sum_parts(const Vector<Real> (&parts)[kParts<Real>]) {
    alignas(kLaneBytes) Real lanes[kLanes<Real>];
    for (std::size_t part = 0; part < kParts<Real>; ++part)
        store(lanes + part * kWidth<Real>, parts[part]);
    return sum_lanes(lanes);
}

// The sums of a pass for a trial on one column.
template <class Real>
class ColumnSums {
  public:
    static constexpr bool kKeeps = false;  // whether the pass keeps the changes of rows
    explicit ColumnSums(const Bundle<Real>*) {}

    void add(std::size_t, std::size_t part, const Both<Real>& change) {
        plus_[part] += change.plus;
        minus_[part] += change.minus;
    }

    void finish(std::int64_t slow_rows, Change* changes) const {
        changes[0] = {sum_parts<Real>(plus_), sum_parts<Real>(minus_), slow_rows};
    }

  private:
    Vector<Real> plus_[kParts<Real>] = {}, minus_[kParts<Real>] = {};
};

// Calls work(0), ..., work(kCount - 1) without a loop.
template <class Work, std::size_t... k>
inline void unroll(const Work& work, std::index_sequence<k...>) {
    (work(k), ...);
}
template <std::size_t kCount, class Work>
inline void unroll(const Work& work) {
    unroll(work, std::make_index_sequence<kCount>{});
}

// The sums of a pass for trials on the columns of a bundle. A row's change belongs to the column
// that is not 0 in it; to the sums of the others, passes of their own would add zeros. This one has
// sums for kColumns columns in registers and fits where a vector has all lanes.
template <std::size_t kColumns>
class BundleSums {
  public:
    static constexpr bool kKeeps = true;
    explicit BundleSums(const Bundle<double>* bundle) : bundle_(*bundle) {}

    void add(std::size_t row, std::size_t, const Both<double>& change) {
        unroll<kColumns>([&](std::size_t k) {
            const auto own = equal(bundle_.owner + row, k);
            plus_[k][0] = choose<Sum>(own, plus_[k][0] + change.plus, plus_[k][0]);
            minus_[k][0] = choose<Sum>(own, minus_[k][0] + change.minus, minus_[k][0]);
        });
    }

    void finish(std::int64_t slow_rows, Change* changes) const {
        unroll<kColumns>([&](std::size_t k) {
            if (k < bundle_.size)
                changes[k] = {sum_parts<double>(plus_[k]), sum_parts<double>(minus_[k]),
                              k ? 0 : slow_rows};
        });
    }

  private:
    using Sum = Vector<double>;
    const Bundle<double> bundle_;
    Sum plus_[kColumns][1] = {}, minus_[kColumns][1] = {};
};

// The same in memory, for narrow vectors.
class StoredSums {
  public:
    static constexpr bool kKeeps = true;
    explicit StoredSums(const Bundle<double>* bundle) : bundle_(*bundle) {
        for (std::size_t k = 0; k < bundle_.size; ++k)
            for (Pair& sum : sums_[k]) sum = Pair{};
    }

    void add(std::size_t row, std::size_t part, const Both<double>& change) {
        for (std::size_t i = 0; i < kWidth<double>; ++i)
            sums_[bundle_.owner[row + i]][part * kWidth<double> + i] +=
                Pair{lane(change.plus, i), lane(change.minus, i)};
    }

    void finish(std::int64_t slow_rows, Change* changes) const {
        for (std::size_t k = 0; k < bundle_.size; ++k) {
            double plus[kLanes<double>], minus[kLanes<double>];
            for (std::size_t lane = 0; lane < kLanes<double>; ++lane) {
                plus[lane] = sums_[k][lane][0];
                minus[lane] = sums_[k][lane][1];
            }
            changes[k] = {sum_lanes(plus), sum_lanes(minus), k ? 0 : slow_rows};
        }
    }

  private:
    const Bundle<double> bundle_;
    Pair sums_[kMaxBundle][kLanes<double>];
};

}  // namespace qms22::QMS22_ISA
