// Passes over the rows of a thread: member values, preparation for trials, and trials.
#pragma once

#include "packs.hpp"
#include "rows.hpp"

namespace qms22 {

// The rows of one thread, pack by pack, and where their state is. If all rows fit into the shared
// memory of their blocks, a block has neighbouring rows and keeps their state there. Otherwise all
// blocks move through device memory side by side. A row belongs to one thread for the whole fit.
template <class Real>
struct Share {
    long long begin;                        // of the block's rows
    int first, n_rows, step;                // of the thread's, counted from there
    Real *residual2, *f, *s1, *s2, *slack;  // residual2: of the component at hand, if in shared
};

// Calls visit(i) for the packs of this thread.
template <class Real, class Visit>
__device__ __forceinline__ void for_packs(const Share<Real>& share, const Visit& visit) {
    for (int i = share.first; i < share.n_rows; i += share.step) visit(i);
}

// Calls visit(component, residuals) for kCount components, from `first` on, of a pack of rows.
template <int kRows, int kCount, class Real, class Visit>
__device__ __forceinline__ void gather_residuals(const Fit<Real>& fit, const Real* entries,
                                                 long long row, int first, const Visit& visit) {
    const int width = fit.n_features + 1;
    const long long stride = fit.stride;
    const Real* const x = in_device_memory(fit.x) + row;
    const Real* const own = entries + first * width;
    Real sums[kRows][kCount] = {};
#pragma unroll 2
    for (int c = 0; c < width; ++c) {
        const Pack<Real, kRows> feature = load_constant<kRows>(x + c * stride);
#pragma unroll
        for (int i = 0; i < kRows; ++i) add_feature(own + c, width, feature.of[i], sums[i]);
    }
#pragma unroll
    for (int r = 0; r < kCount; ++r) {
        Pack<Real, kRows> residual;
#pragma unroll
        for (int i = 0; i < kRows; ++i) residual.of[i] = sums[i][r];
        visit(first + r, residual);
    }
}

// The same for all components; several at once share the loads of x.
template <int kRows, class Real, class Visit>
__device__ __forceinline__ void for_residuals(const Fit<Real>& fit, const Real* entries,
                                              long long row, const Visit& visit) {
    constexpr int kAtOnce = 5;
    int r = 0;
    for (; r + kAtOnce <= fit.n_components; r += kAtOnce)
        gather_residuals<kRows, kAtOnce>(fit, entries, row, r, visit);
    for (; r < fit.n_components; ++r) gather_residuals<kRows, 1>(fit, entries, row, r, visit);
}

template <class Real, int kRows>
__device__ __forceinline__ void add_squares(Pack<Real, kRows>& f,
                                            const Pack<Real, kRows>& residual) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) f.of[i] += residual.of[i] * residual.of[i];
}

// The value of a member on the rows of this thread, from its entries.
template <int kRows, class Real>
__device__ void evaluate(const Fit<Real>& fit, int member, const Real* entries,
                         const Share<Real>& share) {
    for_packs(share, [&](int i) {
        const long long row = share.begin + i;
        Pack<Real, kRows> f = {};
        for_residuals<kRows>(fit, entries, row, [&](int, const Pack<Real, kRows>& residual) {
            add_squares(f, residual);
        });
#pragma unroll
        for (int k = 0; k < kRows; ++k) f.of[k] = larger(f.of[k], fit.floor);
        store(fit.value + member * fit.stride + row, f);
    });
}

// Computes residuals, f, S1, S2 and slack of the rows of this thread, for trials on a member.
template <bool kResident, int kRows, class Real>
__device__ void enter(const Fit<Real>& fit, int member, const Real* entries,
                      const Share<Real>& share) {
    for_packs(share, [&](int i) {
        const long long row = share.begin + i;
        Pack<Real, kRows> f = {}, s1, s2, slack;
        for_residuals<kRows>(fit, entries, row,
                             [&](int component, const Pack<Real, kRows>& residual) {
                                 Pack<Real, kRows> doubled;
#pragma unroll
                                 for (int k = 0; k < kRows; ++k)
                                     doubled.of[k] = residual.of[k] + residual.of[k];
                                 store(fit.residual2 + component * fit.stride + row, doubled);
                                 if (kResident && component == 0)
                                     store<true>(share.residual2 + i, doubled);
                                 add_squares(f, residual);
                             });
#pragma unroll
        for (int k = 0; k < kRows; ++k) {
            const Interval<Real> interval = locate(fit, member, row + k, f.of[k]);
            s1.of[k] = interval.s1;
            s2.of[k] = interval.s2;
            slack.of[k] = interval.slack;
        }
        store<kResident>(share.f + i, f);
        store<kResident>(share.s1 + i, s1);
        store<kResident>(share.s2 + i, s2);
        store<kResident>(share.slack + i, slack);
    });
}

template <class Real, int kDepth>
struct Changes {
    Real of[kChanges<kDepth>];
};

// One row's part of a pass on the slow path, from memory to memory. It is rare, and not inlined so
// that the instructions of the fast path stay in cache.
template <bool kResident, class Real, int kDepth>
__device__ __noinline__ Changes<Real, kDepth> visit_row(const Fit<Real>& fit, int member,
                                                        Pass<Real, kDepth> pass, Share<Real> share,
                                                        int i) {
    const long long row = share.begin + i;
    Real* const residual2 = fit.residual2 + row;
    Against<Real, kDepth> at;
    for (int k = 0; k < kDepth; ++k) {
        at.taken[k] = fit.x[pass.taken[k].feature * fit.stride + row];
        at.tried[k] = fit.x[pass.tried[k].feature * fit.stride + row];
    }
    at.residual2 = residual2[pass.tried[kDepth - 1].component * fit.stride];
    RowState<Real> state = {
        kResident ? share.residual2[i] : residual2[pass.taken[0].component * fit.stride],
        share.f[i], share.s1[i], share.s2[i], share.slack[i]};
    Changes<Real, kDepth> changes;
    visit_exactly(fit, member, row, pass, at, state, changes.of);
    (kResident ? share.residual2[i] : residual2[pass.tried[0].component * fit.stride]) =
        state.residual2;
    share.f[i] = state.f;
    share.s1[i] = state.s1;
    share.s2[i] = state.s2;
    share.slack[i] = state.slack;
    return changes;
}

// What a pass loads of a pack of rows.
template <class Real, int kRows, int kDepth>
struct Brought {
    Pack<Real, kRows> residual2, f, s1, s2, slack;   // the state
    Pack<Real, kRows> after;                         // residual2 of the second component, if any
    Pack<Real, kRows> taken[kDepth], tried[kDepth];  // the features
};

// Takes the decided steps on a pack of rows, tries the next ones and adds the changes of the loss
// to the sums.
template <bool kResident, int kRows, class Real, int kDepth>
__device__ __forceinline__ void visit_pack(const Fit<Real>& fit, int member,
                                           const Pass<Real, kDepth>& pass, const Share<Real>& share,
                                           Real* result, int i,
                                           Brought<Real, kRows, kDepth>& brought, Real* sums) {
    const bool takes = pass.takes();
    const bool moves_on = takes || (kResident && pass.turn > 0 && pass.turn <= kDepth);
    unsigned beyond = 0;
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
        RowState<Real> state = {brought.residual2.of[k], brought.f.of[k], brought.s1.of[k],
                                brought.s2.of[k], brought.slack.of[k]};
        Against<Real, kDepth> at;
#pragma unroll
        for (int j = 0; j < kDepth; ++j) {
            at.taken[j] = brought.taken[j].of[k];
            at.tried[j] = brought.tried[j].of[k];
        }
        at.residual2 = brought.after.of[k];
        Real change[kChanges<kDepth>];
        if (visit_smoothly(pass, at, state, change)) {
            beyond |= 1u << k;
        } else {
#pragma unroll
            for (int j = 0; j < kChanges<kDepth>; ++j) sums[j] += change[j];
        }
        brought.residual2.of[k] = state.residual2;
        brought.f.of[k] = state.f;
        brought.slack.of[k] = state.slack;
    }
    if (beyond == 0) {
        if (moves_on) store<kResident>(result + i, brought.residual2);
        if (takes) {
            store<kResident>(share.f + i, brought.f);
            store<kResident>(share.slack + i, brought.slack);
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
        if (beyond >> k & 1u) continue;
        result[i + k] = brought.residual2.of[k];
        share.f[i + k] = brought.f.of[k];
        share.slack[i + k] = brought.slack.of[k];
    }
#pragma unroll 1
    for (int k = 0; k < kRows; ++k) {
        if (!(beyond >> k & 1u)) continue;
        const Changes<Real, kDepth> changes = visit_row<kResident>(fit, member, pass, share, i + k);
#pragma unroll
        for (int j = 0; j < kChanges<kDepth>; ++j) sums[j] += changes.of[j];
    }
}

// One pass over the rows of this thread.
template <bool kResident, int kRows, class Real, int kDepth>
__device__ __forceinline__ void visit_rows(const Fit<Real>& fit, int member,
                                           const Pass<Real, kDepth>& pass, const Share<Real>& share,
                                           Real* sums) {
    const long long stride = fit.stride;
    const Real* const x = in_device_memory(fit.x) + share.begin;
    Real* const residual2 = in_device_memory(fit.residual2) + share.begin;
    const Real* const before =
        kResident ? share.residual2 : residual2 + pass.taken[0].component * stride;
    Real* const result = kResident ? share.residual2 : residual2 + pass.tried[0].component * stride;
    const Real* const after = residual2 + pass.tried[kDepth - 1].component * stride;
    for_packs(share, [&](int i) {
        // All loads first, so that they overlap.
        Brought<Real, kRows, kDepth> brought = {
            load<kRows>(before + i), load<kRows>(share.f + i), load<kRows>(share.s1 + i),
            load<kRows>(share.s2 + i), load<kRows>(share.slack + i)};
        if (pass.turn > 0) brought.after = load<kRows>(after + i);
#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
            brought.tried[k] = load_constant<kRows>(x + pass.tried[k].feature * stride + i);
            if (pass.taken[k].size != Real(0))
                brought.taken[k] = load_constant<kRows>(x + pass.taken[k].feature * stride + i);
        }
        visit_pack<kResident>(fit, member, pass, share, result, i, brought, sums);
    });
}

}  // namespace qms22
