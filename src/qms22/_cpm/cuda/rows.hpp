// The arithmetic of single rows: one source for the GPU and for the host, where it is tested.
//
// cpp/kernel.hpp derives the method: between two breakpoints the loss of a row is
// const + S1 u + S2 / u, so a trial costs O(1) per row while the member's value stays within its
// slack. Here, in addition, a pass over the rows tries several entries at once. Whether the first
// one moves up, down or not at all is known only when all rows have been added up, so the second is
// tried from each of these three states, the third from each of nine, and so on. That takes more
// arithmetic, which is cheap on a GPU, but fewer passes over memory and fewer synchronizations of
// all blocks, which are not. The decisions are the same as with one entry at a time.
#pragma once

#if defined(__CUDACC__)
#define QMS22_INLINE __device__ __forceinline__
#define QMS22_RARE __device__ __noinline__
#else
#define QMS22_INLINE inline
#define QMS22_RARE inline
#endif

namespace qms22 {

// One fit: the task, the rules, and its memory. Rows are padded to full packs; padding rows are in
// the last group, which has no weight.
template <class Real>
struct Fit {
    long long n_rows;  // with padding
    long long stride;  // distance between two columns, at least n_rows
    int n_features;    // p
    int n_components;  // q
    int n_members;     // m
    int n_groups;
    const Real* x;             // (p + 1, stride): the features, then a column of -1 that meets b
    const int* group;          // (n)
    const Real* group_weight;  // (m, n_groups)
    const Real* row_weight;    // (n), or null where all weights are 1
    Real* value;               // (m, stride): f_i of every row, at least the floor
    Real* residual2;           // (q, stride): 2 (A_i x - b_i) of the member being trained
    Real* f;                   // (n): its value, not floored: steps move the true one
    Real* s1;                  // (n): S1
    Real* s2;                  // (n): S2
    Real* slack;               // (n): distance to the nearest breakpoint
    double* coefficients;      // (blocks, m, q, p + 1), b last: every block has its own copy
    Real* entries;             // (blocks, q, p + 1): those of one member in the rows' precision
    signed char* moves;        // (blocks, q, p + 1): its steps in this sweep: -1, 0 or 1
    double* change;            // (sweeps): of the loss
    int* accepted;             // (sweeps): steps taken
    Real alpha;
    Real inverse_alpha;  // infinity where alpha is 0
    Real floor;          // member values below this count as this
    double tolerance;    // a step is kept when it lowers the loss by more than this
    double step_a;
    double step_b;
};

template <class Real>
QMS22_INLINE Real larger(Real a, Real b) {
    return a > b ? a : b;
}

template <class Real>
QMS22_INLINE Real smaller(Real a, Real b) {
    return a < b ? a : b;
}

#if defined(__CUDACC__)
QMS22_INLINE double magnitude(double a) { return fabs(a); }
QMS22_INLINE float magnitude(float a) { return fabsf(a); }
#else
QMS22_INLINE double magnitude(double a) { return __builtin_fabs(a); }
QMS22_INLINE float magnitude(float a) { return __builtin_fabsf(a); }
#endif

// The one division on the fast path. In float32 the GPU multiplies by its approximate reciprocal,
// which is off by a unit or two in the last place; member values stay within its range.
QMS22_INLINE double quotient(double a, double b) { return a / b; }
QMS22_INLINE float quotient(float a, float b) {
#if defined(__CUDACC__)
    float reciprocal;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(b));
    return a * reciprocal;
#else
    return a / b;
#endif
}

template <class Real>
QMS22_INLINE Real weight(const Fit<Real>& fit, int member, long long row) {
    const Real of_group = fit.group_weight[member * fit.n_groups + fit.group[row]];
    return fit.row_weight ? of_group * fit.row_weight[row] : of_group;
}

// Larger than any member value.
template <class Real>
constexpr Real kFar = 3e38f;
template <>
constexpr double kFar<double> = 1e300;

template <class Real>
struct Interval {
    Real s1, s2, slack;
};

// S1, S2 and slack of a row where the member has the value f.
template <class Real>
QMS22_RARE Interval<Real> locate(const Fit<Real>& fit, int member, long long row, Real f) {
    const Real v = larger(f, fit.floor), own_weight = weight(fit, member, row);
    Real inverse_sum = 0, s2 = 0, own_gap = kFar<Real>, other_gap = kFar<Real>;
    for (int j = 0; j < fit.n_members; ++j) {
        if (j == member) continue;
        const Real other = fit.value[j * fit.stride + row];
        const Real lower = fit.alpha * other, upper = other * fit.inverse_alpha;
        if (v > lower) inverse_sum += Real(1) / other;
        own_gap = smaller(own_gap, magnitude(v - lower));
        const Real other_weight = weight(fit, j, row);
        if (v < upper) s2 += other_weight * other;
        // A set without weight has no breakpoints.
        if (other_weight > Real(0)) other_gap = smaller(other_gap, magnitude(upper - v));
    }
    const Real gap = smaller(own_weight > Real(0) ? own_gap : kFar<Real>, other_gap);
    // Below the floor the smooth form does not hold: no slack, not even for a step of zero.
    const Real slack = f > fit.floor ? smaller(gap, f - fit.floor) : Real(-1);
    return {own_weight * inverse_sum, s2, slack};
}

// The state of a row for the member being trained; residual2 is that of one component.
template <class Real>
struct RowState {
    Real residual2, f, s1, s2, slack;
};

// A step on an entry of the member: A_i[component, feature], or b_i[component] where feature is p.
template <class Real>
struct Step {
    int component, feature;
    Real size;  // 0 where the entry stays as it is
};

// What a pass over the rows does: take the steps that the last pass decided on, then try the next
// entries, all in order.
template <class Real, int kDepth>
struct Pass {
    static_assert(kDepth <= 2, "a pass over more entries may meet more than two components");

    Step<Real> taken[kDepth];
    Step<Real> tried[kDepth];
    // The number of the entry, counted over both lists, with which a second component begins, or 0.
    // Components have two entries or more, so a pass meets at most two of them.
    int turn;

    QMS22_INLINE bool takes() const {
        bool any = false;
        for (int k = 0; k < kDepth; ++k) any |= taken[k].size != Real(0);
        return any;
    }
};

// The pass after `pass`: it tries the next entries, from number `first` of n_entries on, and takes
// the steps that `pass` tries, once `decide` has set their directions.
template <class Real, int kDepth>
QMS22_INLINE Pass<Real, kDepth> pass_after(const Pass<Real, kDepth>& pass, int first, int n_entries,
                                           int width, Real step_a, Real step_b) {
    Pass<Real, kDepth> next;
    Step<Real> entry = pass.tried[kDepth - 1];
    for (int k = 0; k < kDepth; ++k) {
        // After the last entry comes one that does not move.
        const bool is_one = first + k < n_entries;
        if (is_one && first + k > 0 && ++entry.feature == width) {
            entry.feature = 0;
            ++entry.component;
        }
        entry.size = !is_one ? Real(0) : entry.feature < width - 1 ? step_a : step_b;
        next.taken[k] = pass.tried[k];
        next.tried[k] = entry;
    }
    next.turn = 0;
    for (int k = 1; k < 2 * kDepth; ++k) {
        const Step<Real>& now = k < kDepth ? next.taken[k] : next.tried[k - kDepth];
        const Step<Real>& before = k - 1 < kDepth ? next.taken[k - 1] : next.tried[k - 1 - kDepth];
        if (now.component != before.component) next.turn = k;
    }
    return next;
}

// What a pass needs of one row: its features at the entries, and the residual of the second
// component, if there is one.
template <class Real, int kDepth>
struct Against {
    Real taken[kDepth];
    Real tried[kDepth];
    Real residual2;
};

// Takes a step within the slack. Beyond it the slack gets negative, and S1 and S2 no longer hold.
template <class Real>
QMS22_INLINE void take(Real step, Real x, RowState<Real>& state) {
    const Real e = step * x, d = e * e + e * state.residual2;
    state.residual2 += (step + step) * x;
    state.f += d;
    state.slack -= magnitude(d);
}

// Takes a step of any length.
template <class Real>
QMS22_INLINE void take_exactly(const Fit<Real>& fit, int member, long long row, Real step, Real x,
                               RowState<Real>& state) {
    if (step == Real(0)) return;
    take(step, x, state);
    if (state.slack < Real(0)) {
        const Interval<Real> interval = locate(fit, member, row, state.f);
        state = {state.residual2, state.f, interval.s1, interval.s2, interval.slack};
    }
}

// Trying kDepth entries takes this many trials: one of the first, then for each of its three
// outcomes (up, down, stay) those of the others, in this order. Each trial has two changes of the
// loss, for a step up and for a step down.
template <int kDepth>
constexpr int kTrials = 1 + 3 * kTrials<kDepth - 1>;
template <>
constexpr int kTrials<0> = 0;
template <int kDepth>
constexpr int kChanges = 2 * kTrials<kDepth>;

// How far f moves when the residual moves by e and by -e. Neither falls by more than `reach`, the
// larger one of the two.
template <class Real>
struct Moves {
    Real plus, minus, reach;
};

template <class Real>
QMS22_INLINE Moves<Real> moves_of(Real e, Real residual2) {
    const Real square = e * e, cross = e * residual2;
    return {square + cross, square - cross, square + magnitude(cross)};
}

// Calls visit(number, state, moves) for every trial of the entries from number kDepth - kLeft on.
template <int kLeft, int kNumber = 0, class Real, int kDepth, class Visit>
QMS22_INLINE void for_trials(const Pass<Real, kDepth>& pass, const Against<Real, kDepth>& at,
                             RowState<Real> state, const Visit& visit) {
    constexpr int k = kDepth - kLeft;
    if (k > 0 && pass.turn == kDepth + k) state.residual2 = at.residual2;
    const Real e = pass.tried[k].size * at.tried[k];
    const Moves<Real> d = moves_of(e, state.residual2);
    visit(kNumber, state, d);
    if constexpr (kLeft > 1) {
        constexpr int kOthers = kTrials<kLeft - 1>;
        const auto after = [&](Real moved, Real turned) -> RowState<Real> {
            return {state.residual2 + turned, state.f + moved, state.s1, state.s2,
                    state.slack - magnitude(moved)};
        };
        for_trials<kLeft - 1, kNumber + 1>(pass, at, after(d.plus, e + e), visit);
        for_trials<kLeft - 1, kNumber + 1 + kOthers>(pass, at, after(d.minus, -(e + e)), visit);
        for_trials<kLeft - 1, kNumber + 1 + 2 * kOthers>(pass, at, state, visit);
    }
}

// One row's part of a pass on the fast path, by the smooth form of the loss:
//     g(f + d) - g(f) = d (S1 - S2 / (f (f + d))).
// Returns whether a move exceeds the slack, or f is 0, which a slack that was rounded to f does not
// show; if so, the changes and the state are of no use.
template <class Real, int kDepth>
QMS22_INLINE bool visit_smoothly(const Pass<Real, kDepth>& pass, const Against<Real, kDepth>& at,
                                 RowState<Real>& state, Real* change) {
    for (int k = 0; k < kDepth; ++k) {
        if (k > 0 && pass.turn == k) state.residual2 = at.residual2;
        take(pass.taken[k].size, at.taken[k], state);
    }
    if (pass.turn == kDepth) state.residual2 = at.residual2;
    bool beyond = false;
    for_trials<kDepth>(pass, at, state,
                       [&](int number, const RowState<Real>& from, const Moves<Real>& d) {
                           const Real up = from.f + d.plus, um = from.f + d.minus;
                           const Real common = quotient(from.s2, from.f * (up * um));
                           change[2 * number] = d.plus * (from.s1 - common * um);
                           change[2 * number + 1] = d.minus * (from.s1 - common * up);
                           beyond |= d.reach > from.slack || !(from.f > Real(0));
                       });
    return beyond;
}

// A value that a member may take, and its reciprocal.
template <class Real>
struct Candidate {
    Real value, inverse;
};

template <class Real>
QMS22_INLINE Candidate<Real> candidate(const Fit<Real>& fit, Real f) {
    const Real value = larger(f, fit.floor);
    return {value, Real(1) / value};
}

// The same on the slow path, O(m), from the terms of g. Computes the slack again where earlier
// steps have used it up.
template <class Real, int kDepth>
QMS22_INLINE void visit_exactly(const Fit<Real>& fit, int member, long long row,
                                const Pass<Real, kDepth>& pass, const Against<Real, kDepth>& at,
                                RowState<Real>& state, Real* change) {
    for (int k = 0; k < kDepth; ++k) {
        if (k > 0 && pass.turn == k) state.residual2 = at.residual2;
        take_exactly(fit, member, row, pass.taken[k].size, at.taken[k], state);
    }
    if (pass.turn == kDepth) state.residual2 = at.residual2;
    Candidate<Real> from[kTrials<kDepth>], to[kChanges<kDepth>];
    for_trials<kDepth>(pass, at, state,
                       [&](int number, const RowState<Real>& here, const Moves<Real>& d) {
                           from[number] = candidate(fit, here.f);
                           to[2 * number] = candidate(fit, here.f + d.plus);
                           to[2 * number + 1] = candidate(fit, here.f + d.minus);
                           change[2 * number] = change[2 * number + 1] = 0;
                       });
    const Real alpha = fit.alpha, own_weight = weight(fit, member, row);
    for (int j = 0; j < fit.n_members; ++j) {
        if (j == member) continue;
        const Real other = fit.value[j * fit.stride + row], inverse = Real(1) / other;
        const Real other_weight = weight(fit, j, row);
        for (int i = 0; i < kChanges<kDepth>; ++i) {
            const Candidate<Real> u = to[i], v = from[i / 2];
            change[i] +=
                own_weight * (larger(alpha, u.value * inverse) - larger(alpha, v.value * inverse)) +
                other_weight *
                    (larger(alpha, other * u.inverse) - larger(alpha, other * v.inverse));
        }
    }
    const Real e = pass.tried[0].size * at.tried[0];
    if (moves_of(e, state.residual2).reach > state.slack)
        state.slack = locate(fit, member, row, state.f).slack;
}

// Adds one feature, or the -1 for b, to the residuals of kCount components.
template <int kCount, class Real>
QMS22_INLINE void add_feature(const Real* entries, int width, Real x, Real (&residual)[kCount]) {
    for (int r = 0; r < kCount; ++r) residual[r] += entries[r * width] * x;
}

}  // namespace qms22
