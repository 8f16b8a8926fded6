// The kernel of one instruction set: a table of functions over plain pointers.
//
// The mathematics. Fix member i and let u be a candidate value of f_i(x). The part of the loss
// that depends on u is
//
//     g(u) = c_i sum_{j != i} max(alpha, u / f_j) + sum_{l != i} c_l max(alpha, f_l / u)
//
// with breakpoints at alpha f_j and f_l / alpha. Between two neighbouring ones
//
//     g(u) = const + S1 u + S2 / u,
//     S1 = c_i sum_{j: u > alpha f_j} 1 / f_j,    S2 = sum_{l: alpha u < f_l} c_l f_l.
//
// A trial on entry (r, c) with step s moves the residual R_r of every row by e = s x_c, hence
// f by d = e^2 + 2 e R_r and the loss by
//
//     g(f + d) - g(f) = d (S1 - S2 / (f (f + d))).
//
// So every row keeps f, S1, S2 and its slack (the distance from f to the nearest breakpoint), and a
// trial costs O(1) per row for any number of members. The few rows whose d exceeds their slack take
// the slow path: O(m), from the terms of g. Residuals are stored doubled, which saves a
// multiplication.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qms22 {

// Partial sums are formed over blocks of this many rows and added in block order, and inside a
// block over a fixed number of lanes. Both define the result: they make it the same to the bit for
// every instruction set and every number of threads.
constexpr std::size_t kBlockRows = 2048;
constexpr std::size_t kLaneBytes = 64;

template <class Real>
constexpr std::size_t kLanes = kLaneBytes / sizeof(Real);

// Neighbouring columns no two of which differ from 0 in the same row, as the levels of a category
// do. A step on one of them does not change the rows of the others. So one pass tries a step on
// each of them, and the next one takes all that were accepted. And until a step is accepted, rows
// have the same changes in trials on all bundles with the same sum of columns.
template <class Real>
struct Bundle {
    std::size_t first, size;
    const Real* x;              // (n): the sum of its columns
    const std::int64_t* owner;  // (n): which of them differs from 0, from 0 on; null if it has one
};
constexpr std::size_t kMaxBundle = 8;

// In float32 the change of a row near the floor may be NaN, which makes the sums of every column
// NaN; with bundles it would be the sum of one column, and results would differ.
template <class Real>
constexpr bool kHasBundles = sizeof(Real) == sizeof(double);

// The rows of a task and the state of its fit. Rows are padded to full lanes; padding rows copy a
// real row and have no weight.
template <class Real>
struct KernelRows {
    std::size_t stride;        // distance between two columns, at least the number of rows
    std::size_t n_features;    // p; x has one more column
    std::size_t n_components;  // q
    std::size_t n_members;     // m
    std::size_t n_groups;
    const Real* x;                // (p + 1, stride): the features, then a column of -1 that meets b
    const Bundle<Real>* bundles;  // of all columns of x, or null if all are of one column
    std::size_t n_bundles;
    Real* kept_plus;            // (n): the change of the loss per row in the last trial on a bundle
    Real* kept_minus;           // (n)
    const std::int32_t* group;  // (n): in ascending order
    const Real* group_weight;   // (m, n_groups)
    const Real* row_weight;     // (n), or null where all weights are 1
    Real* value;                // (m, stride): f_i of every row
    Real* residual2;            // (q, stride): 2 (A_i x - b_i) of the member being trained
    Real* s1;                   // (n): S1
    Real* s2;                   // (n): S2
    Real* slack;                // (n): distance to the nearest breakpoint
    Real alpha;
    Real inverse_alpha;  // infinity where alpha is 0
    Real floor;          // member values below this count as this
};

// A step on one entry of a member, or on the entries that belong to a bundle.
template <class Real>
struct Step {
    std::size_t component;
    const Real* x;               // (n): the column, or the sum of a bundle's columns
    Real size;                   // of a bundle: tried on every column
    const Bundle<Real>* bundle;  // null for one column
    const Real* taken;           // (kLanes) of a bundle: accepted on every column, or 0
    bool kept;                   // of a bundle: rows have the kept changes in this trial
};

// The change of the loss for +step and for -step, over one block.
struct Change {
    double plus;
    double minus;
    std::int64_t slow_rows;  // rows that took the slow path
};

template <class Real>
struct Kernel {
    // Computes the member's values |A x - b|^2 on rows [begin, end) from its coefficients (q, p +
    // 1).
    void (*evaluate)(const KernelRows<Real>&, std::size_t member, const Real* coefficients,
                     std::size_t begin, std::size_t end);
    // Computes residuals, S1, S2 and slack of rows [begin, end) for trials on the member.
    void (*enter)(const KernelRows<Real>&, std::size_t member, const Real* coefficients,
                  std::size_t begin, std::size_t end);
    // Tries a step in both directions on rows [begin, end) and returns the change for every column.
    // In the same pass over memory it first takes the step that was accepted last (`accepted`, or
    // null). Trials on a bundle have the same bits as trials on one column after the other.
    void (*attempt)(const KernelRows<Real>&, std::size_t member, const Step<Real>* accepted,
                    const Step<Real>& step, std::size_t begin, std::size_t end, Change* changes);
};

}  // namespace qms22
