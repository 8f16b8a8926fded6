// The arithmetic of single rows: one source for the GPU and for the host, where it is tested.
#pragma once

#if defined(__CUDACC__)
#define QMS22_INLINE __device__ __forceinline__
#else
#include <math.h>
#define QMS22_INLINE inline
#endif

namespace qms22 {

// The nearest references that count, as in cpp/nearest_kernel.hpp.
constexpr int kNeighbors = 16;

// References that a value of a row meets before the next one is loaded.
constexpr int kGroup = 8;

// Rows and the references that they are compared with. Strides count elements.
template <class Real>
struct Comparison {
    const Real* rows;  // in any memory order
    long long n_rows, row_stride, column_stride;
    const Real* references;  // (n_groups, p, kGroup), the last group filled up with infinity
    const long long* skip;   // (n): a reference that does not count for the row, or -1; or null
    int n_features, n_references, n_groups;
    int groups_per_tile;  // in shared memory at a time
    Real floor;           // added to every distance
};

QMS22_INLINE double square_root(double a) { return sqrt(a); }
QMS22_INLINE float square_root(float a) { return sqrtf(a); }

#if defined(__CUDACC__)
QMS22_INLINE float infinity() { return __int_as_float(0x7f800000); }
#else
QMS22_INLINE float infinity() { return INFINITY; }
#endif

// The smallest squared distances so far, in ascending order. All indices are constants after
// unrolling, so that a GPU keeps them in registers.
template <class Real>
struct Nearest {
    Real squared[kNeighbors];

    QMS22_INLINE void clear() {
#pragma unroll
        for (int i = 0; i < kNeighbors; ++i) squared[i] = Real(infinity());
    }

    QMS22_INLINE void add(Real distance) {
        if (!(distance < squared[kNeighbors - 1])) return;
#pragma unroll
        for (int i = kNeighbors - 1; i > 0; --i) {
            const Real next = distance < squared[i - 1] ? squared[i - 1] : distance;
            squared[i] = distance < squared[i] ? next : squared[i];
        }
        squared[0] = distance < squared[0] ? distance : squared[0];
    }
};

// Adds the distances of a row to one group of references; `first` is the number of the first one.
// Squares are summed column by column, as on the CPU.
template <class Real>
QMS22_INLINE void add_group(const Comparison<Real>& task, long long row, const Real* group,
                            int first, long long skipped, Nearest<Real>& nearest) {
    Real sums[kGroup] = {};
    const Real* const values = task.rows + row * task.row_stride;
    for (int c = 0; c < task.n_features; ++c, group += kGroup) {
        const Real x = values[c * task.column_stride];
#pragma unroll
        for (int j = 0; j < kGroup; ++j) {
            const Real difference = x - group[j];
            sums[j] += difference * difference;
        }
    }
#pragma unroll
    for (int j = 0; j < kGroup; ++j)
        if (first + j != skipped) nearest.add(sums[j]);
}

// The product of d_i^(2^-i) over the nearest references, rounded as in cpp/nearest_kernel.cpp.
template <class Real>
QMS22_INLINE double product(const Comparison<Real>& task, const Nearest<Real>& nearest,
                            long long skipped) {
    const int n_counted = task.n_references - (skipped < 0 ? 0 : 1);
    Real result = 1;
#pragma unroll
    for (int i = kNeighbors - 1; i >= 0; --i)
        if (i < n_counted)
            result = square_root(result * (square_root(nearest.squared[i]) + task.floor));
    return double(result);
}

// A node of a tree; see `Forest` in forest.py. A leaf is its own child.
struct alignas(8) Node {
    int child;       // counted from the root
    unsigned split;  // feature · 256 + threshold
};

struct Trees {
    const Node* nodes;
    const float* values;
    const long long* first_node;  // of every tree
    int n_trees;
};

// The mean value of a row over all trees, summed in their order. `bins` is (p, n_rows).
QMS22_INLINE double forest_score(const Trees& trees, const unsigned char* bins, long long n_rows,
                                 long long row) {
    double sum = 0;
    for (int tree = 0; tree < trees.n_trees; ++tree) {
        const long long root = trees.first_node[tree];
        const Node* const nodes = trees.nodes + root;
        for (int place = 0;;) {
            const Node node = nodes[place];
            const unsigned bin = bins[(long long)(node.split >> 8U) * n_rows + row];
            const int next = node.child + int(bin > (node.split & 255U));
            if (next == place) {
                sum += double(trees.values[root + place]);
                break;
            }
            place = next;
        }
    }
    return sum / trees.n_trees;
}

// The number of ascending values below x or, if `equal` counts, at most x.
template <class Value>
QMS22_INLINE long long count_below(const Value* ascending, long long n, Value x, bool equal) {
    long long low = 0, high = n;
    while (low < high) {
        const long long middle = low + (high - low) / 2;
        const bool is_below = equal ? ascending[middle] <= x : ascending[middle] < x;
        (is_below ? low : high) = is_below ? middle + 1 : middle;
    }
    return low;
}

// See `HeldOutScores.log_p_values` in held_out.py.
QMS22_INLINE double log_p_value(const double* ascending, long long n, double deviation,
                                double score) {
    const long long not_counted =
        count_below(ascending, n, score, false) + count_below(ascending, n, score, true);
    const double beyond = score - ascending[n - 1];
    return log(double(1 + 2 * n - not_counted) / double(2 * n + 2)) -
           (beyond > 0 ? beyond : 0) / deviation;
}

// log(exp(a) + exp(b)) as NumPy's logaddexp computes it.
QMS22_INLINE double add_logarithms(double a, double b) {
    if (a == b) return a + 0.693147180559945309417232121458;
    return (a > b ? a : b) + log1p(exp(a > b ? b - a : a - b));
}

// Rows of numbers in any memory order. Strides count elements.
struct Rows {
    const double* values;
    long long n_rows, row_stride, column_stride;
    int n_features;
};

// The hash of a row by SplitMix64; see `hash_rows` in learned_rows.py.
QMS22_INLINE unsigned long long hash_row(const Rows& rows, long long row) {
    unsigned long long key = 0;
    for (int c = 0; c < rows.n_features; ++c) {
        union {
            double value;
            unsigned long long bits;
        } cell;
        cell.value = rows.values[row * rows.row_stride + c * rows.column_stride] + 0.0;
        key = key * 0x9E3779B97F4A7C15ULL + cell.bits;
        key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9ULL;
        key = (key ^ (key >> 27)) * 0x94D049BB133111EBULL;
        key ^= key >> 31;
    }
    return key;
}

}  // namespace qms22
