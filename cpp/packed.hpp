// A task's rows in the kernel's layout: sorted by group, feature-major, aligned, padded to lanes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <vector>

#include "kernel.hpp"

namespace qms22 {

// A table of doubles in any memory order; strides are counted in elements.
struct StridedTable {
    const double* data;
    std::size_t n_rows, n_columns;
    std::ptrdiff_t row_stride, column_stride;

    double operator()(std::size_t row, std::size_t column) const {
        return data[std::ptrdiff_t(row) * row_stride + std::ptrdiff_t(column) * column_stride];
    }
};

// The product of two sizes. Throws std::bad_alloc if there is no memory for so many numbers.
inline std::size_t size_product(std::size_t a, std::size_t b) {
    constexpr std::size_t kMost = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(double);
    if (b != 0 && a > kMost / b) throw std::bad_alloc();
    return a * b;
}

// Cache-line aligned, uninitialised memory for arrays of the same length.
template <class T>
class Aligned {
  public:
    Aligned() = default;
    explicit Aligned(std::size_t n_arrays, std::size_t length = 1) {
        const std::size_t size = size_product(n_arrays, length) * sizeof(T);
        if (size) data_.reset(static_cast<T*>(::operator new(size, kAlignment)));
    }
    T* get() const { return data_.get(); }
    T& operator[](std::size_t i) const { return data_.get()[i]; }

  private:
    static constexpr std::align_val_t kAlignment{kLaneBytes};
    struct Free {
        void operator()(T* data) const { ::operator delete(data, kAlignment); }
    };
    std::unique_ptr<T, Free> data_;
};

// The QMS task: rows, their weights inside the member sets, and the rules of CPM. Owns no memory.
struct Task {
    StridedTable x;             // (n, p)
    const std::int32_t* group;  // (n)
    std::size_t n_groups;
    const double* group_weight;  // (m, n_groups)
    const double* row_weight;    // (n) or null
    std::size_t n_members, n_components;
    double alpha, floor, tolerance, step_a, step_b;
};

constexpr std::size_t round_up(std::size_t size, std::size_t to) {
    return (size + to - 1) / to * to;
}

// Distance between two arrays of `n_rows` in the arena. Arrays that are read side by side must not
// start at the same offset within a page: they would compete for the same cache sets, and loads
// would wait for unrelated stores. An odd number of cache lines modulo a page keeps any 64 arrays
// apart.
template <class Real>
std::size_t staggered_stride(std::size_t n_rows) {
    constexpr std::size_t kLinesPerPage = 4096 / kLaneBytes, kStagger = 9;
    const std::size_t n_lines = (n_rows + kLanes<Real> - 1) / kLanes<Real>;
    const std::size_t beyond = (kStagger + kLinesPerPage - n_lines % kLinesPerPage) % kLinesPerPage;
    return (n_lines + beyond) * kLanes<Real>;
}

// Row numbers in ascending order of group, the kernel's order of rows.
inline std::vector<std::size_t> sort_by_group(const std::int32_t* group, std::size_t n_rows) {
    std::vector<std::size_t> order(n_rows);
    std::iota(order.begin(), order.end(), std::size_t(0));
    std::stable_sort(order.begin(), order.end(),
                     [group](std::size_t a, std::size_t b) { return group[a] < group[b]; });
    return order;
}

// Copies rows into feature-major columns, the last one being the column of -1 for b. Padding rows
// copy the last row.
template <class Real>
void pack(const StridedTable& x, const std::size_t* order, std::size_t first, std::size_t n_rows,
          std::size_t n_padded, std::size_t stride, Real* columns) {
    // Tile by tile, so that both sides of the transposition stay in cache.
    constexpr std::size_t kTile = 64;
    for (std::size_t begin = 0; begin < n_padded; begin += kTile) {
        const std::size_t end = std::min(begin + kTile, n_padded);
        for (std::size_t c = 0; c < x.n_columns; ++c) {
            for (std::size_t i = begin; i < end; ++i) {
                const std::size_t row = first + std::min(i, n_rows - 1);
                columns[c * stride + i] = Real(x(order ? order[row] : row, c));
            }
        }
    }
    std::fill_n(columns + x.n_columns * stride, n_padded, Real(-1));
}

// The memory behind `KernelRows`, and the blocks of its rows.
template <class Real>
class PackedRows {
  public:
    explicit PackedRows(const Task& task)
        : n_rows_(round_up(task.x.n_rows, kLanes<Real>)),
          n_blocks_((n_rows_ + kBlockRows - 1) / kBlockRows),
          group_(n_rows_),
          group_weight_(task.n_members, task.n_groups + 1) {
        const std::size_t stride = staggered_stride<Real>(n_rows_);
        const bool has_row_weight = task.row_weight != nullptr;
        arena_ = Aligned<Real>(
            task.x.n_columns + 1 + task.n_members + task.n_components + 3 + has_row_weight, stride);
        view_.stride = stride;
        view_.n_features = task.x.n_columns;
        view_.n_components = task.n_components;
        view_.n_members = task.n_members;
        view_.n_groups = task.n_groups + 1;
        view_.group = group_.get();
        view_.group_weight = group_weight_.get();
        Real* next = arena_.get();
        const auto take = [&](std::size_t n_arrays) {
            Real* const taken = next;
            next += n_arrays * stride;
            return taken;
        };
        Real* const x = take(view_.n_features + 1);
        view_.x = x;
        view_.bundles = nullptr;
        view_.n_bundles = 0;
        view_.kept_plus = view_.kept_minus = nullptr;
        view_.value = take(view_.n_members);
        view_.residual2 = take(view_.n_components);
        view_.s1 = take(1);
        view_.s2 = take(1);
        view_.slack = take(1);
        Real* const row_weight = has_row_weight ? take(1) : nullptr;
        view_.row_weight = row_weight;
        view_.alpha = Real(task.alpha);
        view_.inverse_alpha =
            task.alpha > 0 ? Real(1 / task.alpha) : std::numeric_limits<Real>::infinity();
        view_.floor = Real(task.floor);
        fill(task, x, row_weight);
    }

    const KernelRows<Real>& view() const { return view_; }
    std::size_t n_rows() const { return n_rows_; }  // with padding to full lanes
    std::size_t n_blocks() const { return n_blocks_; }

    // Calls work(block, begin, end) for the blocks of one thread of a team.
    template <class Work>
    void for_blocks(std::size_t rank, std::size_t n_threads, const Work& work) const {
        const std::size_t first = n_blocks_ * rank / n_threads;
        const std::size_t last = n_blocks_ * (rank + 1) / n_threads;
        for (std::size_t block = first; block < last; ++block)
            work(block, block * kBlockRows, std::min(n_rows_, (block + 1) * kBlockRows));
    }

    // Copies the coefficients (q, p + 1) of one member out of all, in the kernel's precision.
    // Memory that `own` has from another member is enough.
    void load_member(const std::vector<double>& all, std::size_t member,
                     std::vector<Real>& own) const {
        const std::size_t size = view_.n_components * (view_.n_features + 1);
        own.resize(size + kLanes<Real>);  // a look-up loads full vectors
        std::transform(all.data() + member * size, all.data() + (member + 1) * size, own.data(),
                       [](double value) { return Real(value); });
    }

  private:
    void fill(const Task& task, Real* x, Real* row_weight) {
        const std::size_t n = task.x.n_rows, n_groups = view_.n_groups;
        const std::vector<std::size_t> order = sort_by_group(task.group, n);
        pack(task.x, order.data(), 0, n, n_rows_, view_.stride, x);
        // The last group is for padding rows and has no weight.
        for (std::size_t i = 0; i < n_rows_; ++i)
            group_[i] = i < n ? task.group[order[i]] : std::int32_t(task.n_groups);
        for (std::size_t member = 0; member < task.n_members; ++member)
            for (std::size_t g = 0; g < n_groups; ++g)
                group_weight_[member * n_groups + g] =
                    g < task.n_groups ? Real(task.group_weight[member * task.n_groups + g])
                                      : Real(0);
        if (task.row_weight)
            for (std::size_t i = 0; i < n_rows_; ++i)
                row_weight[i] = i < n ? Real(task.row_weight[order[i]]) : Real(0);
    }

    std::size_t n_rows_, n_blocks_;
    Aligned<Real> arena_;  // every array of view_ that is as long as a column
    Aligned<std::int32_t> group_;
    Aligned<Real> group_weight_;
    KernelRows<Real> view_;
};

}  // namespace qms22
