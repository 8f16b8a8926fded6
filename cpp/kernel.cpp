// The kernel, compiled once per instruction set with QMS22_ISA naming the set.
//
// It uses only arithmetic that rounds the same everywhere (no contraction, no reassociation), and a
// row's lane is its position modulo kLanes on hardware of any width, so all instruction sets
// compute the same bits. Only the tables at the end may have external linkage: of anything else the
// linker would keep one copy for all instruction sets.
#include "kernel.hpp"

#include "lanes.hpp"
#include "sums.hpp"

namespace qms22::QMS22_ISA {
namespace {

// The weights of kWidth rows inside one member set.
template <class Real>
inline Vector<Real> weight(const KernelRows<Real>& rows, std::size_t member, std::size_t row) {
    const Real* of_group = rows.group_weight + member * rows.n_groups;
    const std::int32_t* group = rows.group + row;
    // Rows are sorted by group: often all are of one.
    const bool is_one = group[0] == group[kWidth<Real> - 1];
    const Vector<Real> result = is_one ? fill(of_group[group[0]]) : gather(of_group, group);
    return rows.row_weight ? result * load(rows.row_weight + row) : result;
}

template <class Real>
struct Interval {
    Vector<Real> s1, s2, slack;
};

// S1, S2 and slack of kWidth rows where the member has the value f.
template <class Real>
inline Interval<Real> locate(const KernelRows<Real>& rows, std::size_t member, std::size_t row,
                             Vector<Real> f) {
    using V = Vector<Real>;
    const V zero = {};
    const V infinity = fill(kInfinity<Real>);
    const V v = larger(f, fill(rows.floor));
    const V own_weight = weight(rows, member, row);
    V inverse_sum = zero, s2 = zero, own_gap = infinity, other_gap = infinity;
    for (std::size_t j = 0; j < rows.n_members; ++j) {
        if (j == member) continue;
        const V other = load(rows.value + j * rows.stride + row);
        const V lower = rows.alpha * other, upper = other * rows.inverse_alpha;
        inverse_sum += choose(v > lower, fill(Real(1)) / other, zero);
        own_gap = smaller(own_gap, magnitude<Real>(v - lower));
        const V other_weight = weight(rows, j, row);
        s2 += choose(v < upper, other_weight * other, zero);
        // A set without weight has no breakpoints.
        other_gap =
            smaller(other_gap, choose(other_weight > zero, magnitude<Real>(upper - v), infinity));
    }
    const V gap = smaller(choose(own_weight > zero, own_gap, infinity), other_gap);
    // Below the floor the smooth form does not hold: no slack, not even for a step of zero.
    const V slack = choose(f > fill(rows.floor), smaller<V>(gap, f - rows.floor), fill(Real(-1)));
    return {own_weight * inverse_sum, s2, slack};
}

// g(f + d) - g(f) for both directions from the terms of g. Computes the slack again where earlier
// steps have used it up.
template <class Real>
QMS22_NOINLINE Both<Real> exact(const KernelRows<Real>& rows, std::size_t member, std::size_t row,
                                Both<Real> d, Both<Real> smooth, std::int64_t& slow_rows) {
    using V = Vector<Real>;
    const V floor = fill(rows.floor), alpha = fill(rows.alpha);
    const V f = load(rows.value + member * rows.stride + row);
    const V slack = load(rows.slack + row);
    const auto over = larger(d.plus, d.minus) > slack;
    const V v = larger(f, floor), up = larger(f + d.plus, floor), um = larger(f + d.minus, floor);
    const V own_weight = weight(rows, member, row);
    Both<Real> change = {V{}, V{}};
    for (std::size_t j = 0; j < rows.n_members; ++j) {
        if (j == member) continue;
        const V other = load(rows.value + j * rows.stride + row);
        const V other_weight = weight(rows, j, row);
        const V own_term = larger(alpha, v / other), other_term = larger(alpha, other / v);
        change.plus += own_weight * (larger(alpha, up / other) - own_term) +
                       other_weight * (larger(alpha, other / up) - other_term);
        change.minus += own_weight * (larger(alpha, um / other) - own_term) +
                        other_weight * (larger(alpha, other / um) - other_term);
    }
    store(rows.slack + row, choose(over, locate(rows, member, row, f).slack, slack));
    for (std::size_t i = 0; i < kWidth<Real>; ++i) slow_rows += lane(over, i) != 0;
    return {choose(over, change.plus, smooth.plus), choose(over, change.minus, smooth.minus)};
}

template <class Real>
struct RowState {
    Vector<Real> residual2, f, slack;
};

// Computes S1 and S2 again where an accepted step that moved f by `distance` crossed a breakpoint.
// Returns the slack of all kWidth rows after the step.
template <class Real>
QMS22_NOINLINE Vector<Real> cross(const KernelRows<Real>& rows, std::size_t member, std::size_t row,
                                  Vector<Real> distance) {
    const Vector<Real> slack = load(rows.slack + row);
    const auto crossed = distance > slack;
    const Interval<Real> interval =
        locate(rows, member, row, load(rows.value + member * rows.stride + row));
    store(rows.s1 + row, choose(crossed, interval.s1, load(rows.s1 + row)));
    store(rows.s2 + row, choose(crossed, interval.s2, load(rows.s2 + row)));
    return choose<Vector<Real>>(crossed, interval.slack, slack - distance);
}

// The accepted step that a pass takes before its trial: none, or one on a column of the same row of
// A_i, on columns of a bundle of the same row, or on the last column (b) of the row before.
enum class Pending { kNone, kColumn, kBundle, kRowBefore };

// Takes an accepted step on kWidth rows and returns their new state.
template <class Real, Pending kPending>
inline RowState<Real> accept(const KernelRows<Real>& rows, std::size_t member,
                             const Step<Real>& step, std::size_t row) {
    using V = Vector<Real>;
    Real* const residual2 = rows.residual2 + step.component * rows.stride + row;
    Real* const value = rows.value + member * rows.stride + row;
    V size = fill(step.size);
    if constexpr (kPending == Pending::kBundle)
        size = look_up(step.taken, step.bundle->owner + row);
    const V x = load(step.x + row);
    const V e = size * x, r2 = load(residual2), slack = load(rows.slack + row);
    const V d = e * e + e * r2, distance = magnitude<Real>(d);
    RowState<Real> now = {r2 + (size + size) * x, load(value) + d, slack - distance};
    store(residual2, now.residual2);
    store(value, now.f);
    // A slack that is rounded to f, as in float32, does not show that a step takes f to 0.
    const V reach = choose(now.f < fill(rows.floor), fill(kInfinity<Real>), distance);
    if (QMS22_UNLIKELY(any_greater(reach, slack))) now.slack = cross(rows, member, row, reach);
    store(rows.slack + row, now.slack);
    return now;
}

template <class Real, class Sums, Pending kPending>
void attempt_rows(const KernelRows<Real>& rows, std::size_t member, const Step<Real>* accepted,
                  const Step<Real>& step, std::size_t begin, std::size_t end, Change* changes) {
    using V = Vector<Real>;
    const Real* const x = step.x;
    const Real* const residual2 = rows.residual2 + step.component * rows.stride;
    const Real* const value = rows.value + member * rows.stride;
    const Real* const s1_of = rows.s1;
    const Real* const s2_of = rows.s2;
    const Real* const slack_of = rows.slack;
    const V size = fill(step.size);
    // A copy, so that the compiler can keep it in registers: stores to rows cannot change it.
    const Step<Real> taken = kPending == Pending::kNone ? Step<Real>{} : *accepted;
    Sums sums(step.bundle);
    std::int64_t slow_rows = 0;
    for (std::size_t base = begin; base < end; base += kLanes<Real>) {
        for (std::size_t part = 0; part < kParts<Real>; ++part) {
            const std::size_t row = base + part * kWidth<Real>;
            RowState<Real> now;
            if (kPending == Pending::kNone) {
                now = {load(residual2 + row), load(value + row), load(slack_of + row)};
            } else {
                now = accept<Real, kPending>(rows, member, taken, row);
                if (kPending == Pending::kRowBefore) now.residual2 = load(residual2 + row);
            }
            const V e = size * load(x + row);
            const V square = e * e, cross = e * now.residual2;
            const Both<Real> d = {square + cross, square - cross};
            const V up = now.f + d.plus, um = now.f + d.minus;
            const V s1 = load(s1_of + row), common = load(s2_of + row) / (now.f * (up * um));
            Both<Real> change = {d.plus * (s1 - common * um), d.minus * (s1 - common * up)};
            if (QMS22_UNLIKELY(any_greater(larger(d.plus, d.minus), now.slack)))
                change = exact(rows, member, row, d, change, slow_rows);
            if constexpr (Sums::kKeeps) {
                store(rows.kept_plus + row, change.plus);
                store(rows.kept_minus + row, change.minus);
            }
            sums.add(row, part, change);
        }
    }
    sums.finish(slow_rows, changes);
}

// Trials on a bundle whose rows have the kept changes.
template <class Real, class Sums>
void add_kept(const KernelRows<Real>& rows, const Step<Real>& step, std::size_t begin,
              std::size_t end, Change* changes) {
    Sums sums(step.bundle);
    for (std::size_t base = begin; base < end; base += kLanes<Real>) {
        for (std::size_t part = 0; part < kParts<Real>; ++part) {
            const std::size_t row = base + part * kWidth<Real>;
            sums.add(row, part, {load(rows.kept_plus + row), load(rows.kept_minus + row)});
        }
    }
    sums.finish(0, changes);
}

template <class Real, class Sums>
inline void attempt_columns(const KernelRows<Real>& rows, std::size_t member,
                            const Step<Real>* accepted, const Step<Real>& step, std::size_t begin,
                            std::size_t end, Change* changes) {
    const auto run = [&](auto* pass) { pass(rows, member, accepted, step, begin, end, changes); };
    if constexpr (Sums::kKeeps)
        if (step.kept) return add_kept<Real, Sums>(rows, step, begin, end, changes);
    if (!accepted) return run(attempt_rows<Real, Sums, Pending::kNone>);
    if constexpr (kHasBundles<Real>)
        if (accepted->bundle) return run(attempt_rows<Real, Sums, Pending::kBundle>);
    if (accepted->component == step.component)
        return run(attempt_rows<Real, Sums, Pending::kColumn>);
    return run(attempt_rows<Real, Sums, Pending::kRowBefore>);
}

template <class Real>
void attempt(const KernelRows<Real>& rows, std::size_t member, const Step<Real>* accepted,
             const Step<Real>& step, std::size_t begin, std::size_t end, Change* changes) {
    const auto run = [&](auto* pass) { pass(rows, member, accepted, step, begin, end, changes); };
    if (!step.bundle) return run(attempt_columns<Real, ColumnSums<Real>>);
    if constexpr (kHasBundles<Real> && kParts<Real> > 1) {
        run(attempt_columns<Real, StoredSums>);
    } else if constexpr (kHasBundles<Real>) {
        const std::size_t size = step.bundle->size;
        if (size <= 3) return run(attempt_columns<Real, BundleSums<3>>);
        if (size <= 4) return run(attempt_columns<Real, BundleSums<4>>);
        if (size <= 6) return run(attempt_columns<Real, BundleSums<6>>);
        run(attempt_columns<Real, BundleSums<kMaxBundle>>);
    }
}

// Residuals of kCount components on kWidth rows, with the bits of `residuals`: that one also adds
// the zeros of columns that do not own a row.
template <std::size_t kCount>
inline void residuals_of_bundles(const KernelRows<double>& rows, const double* of_first,
                                 std::size_t row, Vector<double> (&sums)[kCount]) {
    const std::size_t width = rows.n_features + 1;
    for (std::size_t r = 0; r < kCount; ++r) sums[r] = Vector<double>{};
    for (std::size_t i = 0; i < rows.n_bundles; ++i) {
        const Bundle<double>& bundle = rows.bundles[i];
        const double* const own = of_first + bundle.first;
        const Vector<double> x = load(bundle.x + row);
        if (bundle.size == 1)
            for (std::size_t r = 0; r < kCount; ++r) sums[r] += own[r * width] * x;
        else
            for (std::size_t r = 0; r < kCount; ++r)
                sums[r] += look_up(own + r * width, bundle.owner + row) * x;
    }
}

// Residuals of kCount components, from `first` on, on kWidth rows. Several at once share the loads
// of x. The order of each sum determines the bits of the result.
template <class Real, std::size_t kCount>
inline void residuals(const KernelRows<Real>& rows, const Real* coefficients, std::size_t first,
                      std::size_t row, Vector<Real> (&sums)[kCount]) {
    const std::size_t width = rows.n_features + 1;
    const Real* const of_first = coefficients + first * width;
    if constexpr (kHasBundles<Real>)
        if (rows.bundles) return residuals_of_bundles(rows, of_first, row, sums);
    const Vector<Real> x = load(rows.x + row);
    for (std::size_t r = 0; r < kCount; ++r) sums[r] = of_first[r * width] * x;
    for (std::size_t c = 1; c < width; ++c) {
        const Vector<Real> next = load(rows.x + c * rows.stride + row);
        for (std::size_t r = 0; r < kCount; ++r) sums[r] += of_first[r * width + c] * next;
    }
}

// Calls visit(component, residual) for every component on kWidth rows.
template <class Real, class Visit>
inline void for_residuals(const KernelRows<Real>& rows, const Real* coefficients, std::size_t row,
                          const Visit& visit) {
    constexpr std::size_t kAtOnce = 5;
    std::size_t r = 0;
    for (; r + kAtOnce <= rows.n_components; r += kAtOnce) {
        Vector<Real> sums[kAtOnce];
        residuals(rows, coefficients, r, row, sums);
        for (std::size_t i = 0; i < kAtOnce; ++i) visit(r + i, sums[i]);
    }
    for (; r < rows.n_components; ++r) {
        Vector<Real> sums[1];
        residuals(rows, coefficients, r, row, sums);
        visit(r, sums[0]);
    }
}

template <class Real>
void evaluate(const KernelRows<Real>& rows, std::size_t member, const Real* coefficients,
              std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; row += kWidth<Real>) {
        Vector<Real> f = {};
        for_residuals(rows, coefficients, row,
                      [&](std::size_t, Vector<Real> residual) { f += residual * residual; });
        store(rows.value + member * rows.stride + row, larger(f, fill(rows.floor)));
    }
}

template <class Real>
void enter(const KernelRows<Real>& rows, std::size_t member, const Real* coefficients,
           std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; row += kWidth<Real>) {
        Vector<Real> f = {};
        for_residuals(rows, coefficients, row, [&](std::size_t r, Vector<Real> residual) {
            store(rows.residual2 + r * rows.stride + row, residual + residual);
            f += residual * residual;
        });
        // Not floored, unlike in `evaluate`: steps move the true value.
        store(rows.value + member * rows.stride + row, f);
        const Interval<Real> interval = locate(rows, member, row, f);
        store(rows.s1 + row, interval.s1);
        store(rows.s2 + row, interval.s2);
        store(rows.slack + row, interval.slack);
    }
}

}  // namespace

extern const Kernel<double> kernel_double;
extern const Kernel<float> kernel_float;
const Kernel<double> kernel_double = {evaluate<double>, enter<double>, attempt<double>};
const Kernel<float> kernel_float = {evaluate<float>, enter<float>, attempt<float>};

}  // namespace qms22::QMS22_ISA
