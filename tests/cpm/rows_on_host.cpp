// The GPU's per-row arithmetic on the host: the sweeps of cpm.cu with one thread and plain sums.
#include <vector>

#include "rows.hpp"

namespace qms22 {
namespace {

template <class Real>
Real residual(const Fit<Real>& fit, int component, long long row) {
    const int width = fit.n_features + 1;
    Real sum[1] = {};
    for (int c = 0; c < width; ++c) {
        const Real x = c < fit.n_features ? fit.x[c * fit.stride + row] : Real(-1);
        add_feature(fit.entries + component * width + c, width, x, sum);
    }
    return sum[0];
}

template <class Real>
void evaluate(const Fit<Real>& fit, int member) {
    for (long long row = 0; row < fit.n_rows; ++row) {
        Real f = 0;
        for (int r = 0; r < fit.n_components; ++r) {
            const Real found = residual(fit, r, row);
            f += found * found;
        }
        fit.value[member * fit.stride + row] = larger(f, fit.floor);
    }
}

template <class Real>
void enter(const Fit<Real>& fit, int member) {
    for (long long row = 0; row < fit.n_rows; ++row) {
        fit.f[row] = 0;
        for (int r = 0; r < fit.n_components; ++r) {
            const Real found = residual(fit, r, row);
            fit.residual2[r * fit.stride + row] = found + found;
            fit.f[row] += found * found;
        }
        const Interval<Real> interval = locate(fit, member, row, fit.f[row]);
        fit.s1[row] = interval.s1;
        fit.s2[row] = interval.s2;
        fit.slack[row] = interval.slack;
    }
}

template <class Real, int kDepth>
void visit_row(const Fit<Real>& fit, int member, const Pass<Real, kDepth>& pass, long long row,
               double* sums) {
    Real* const residual2 = fit.residual2 + row;
    Against<Real, kDepth> at;
    for (int k = 0; k < kDepth; ++k) {
        at.taken[k] = fit.x[pass.taken[k].feature * fit.stride + row];
        at.tried[k] = fit.x[pass.tried[k].feature * fit.stride + row];
    }
    at.residual2 = residual2[pass.tried[kDepth - 1].component * fit.stride];
    const RowState<Real> start = {residual2[pass.taken[0].component * fit.stride], fit.f[row],
                                  fit.s1[row], fit.s2[row], fit.slack[row]};
    RowState<Real> state = start;
    Real changes[kChanges<kDepth>];
    if (visit_smoothly(pass, at, state, changes)) {
        state = start;
        visit_exactly(fit, member, row, pass, at, state, changes);
    }
    for (int i = 0; i < kChanges<kDepth>; ++i) sums[i] += double(changes[i]);
    residual2[pass.tried[0].component * fit.stride] = state.residual2;
    fit.f[row] = state.f;
    fit.s1[row] = state.s1;
    fit.s2[row] = state.s2;
    fit.slack[row] = state.slack;
}

// Which steps the next pass takes, and in which direction.
template <class Real, int kDepth>
void decide(const Fit<Real>& fit, const double* sums, Pass<Real, kDepth>& next, double* own,
            int sweep) {
    const int width = fit.n_features + 1;
    int slot = 0;
    for (int k = 0; k < kDepth; ++k) {
        Step<Real>& entry = next.taken[k];
        const bool plus = sums[slot] < -fit.tolerance;
        const bool minus = !plus && sums[slot + 1] < -fit.tolerance;
        const double step = entry.feature < fit.n_features ? fit.step_a : fit.step_b;
        own[entry.component * width + entry.feature] += (int(plus) - int(minus)) * step;
        entry.size = plus ? entry.size : minus ? -entry.size : Real(0);
        fit.change[sweep] += plus ? sums[slot] : minus ? sums[slot + 1] : 0;
        fit.accepted[sweep] += plus || minus;
        slot = 2 + (plus ? 0 : minus ? 1 : 2) * kChanges<1>;
    }
}

template <class Real, int kDepth>
void sweep_members(const Fit<Real>& fit, int n_sweeps) {
    const int width = fit.n_features + 1, n_entries = fit.n_components * width;
    const auto own = [&](int member) { return fit.coefficients + member * n_entries; };
    const auto take_up = [&](int member) {
        for (int e = 0; e < n_entries; ++e) fit.entries[e] = Real(own(member)[e]);
    };
    for (int member = 0; member < fit.n_members; ++member) {
        take_up(member);
        evaluate(fit, member);
    }
    for (int sweep = 0; sweep < n_sweeps; ++sweep) {
        for (int member = 0; member < fit.n_members; ++member) {
            take_up(member);
            enter(fit, member);
            const auto next_pass = [&](const Pass<Real, kDepth>& pass, int first) {
                return pass_after(pass, first, n_entries, width, Real(fit.step_a),
                                  Real(fit.step_b));
            };
            Pass<Real, kDepth> pass = next_pass({}, 0);
            for (int first = kDepth; first < n_entries + kDepth; first += kDepth) {
                std::vector<double> sums(kChanges<kDepth>);
                for (long long row = 0; row < fit.n_rows; ++row)
                    visit_row(fit, member, pass, row, sums.data());
                pass = next_pass(pass, first);
                decide(fit, sums.data(), pass, own(member), sweep);
            }
            take_up(member);
            evaluate(fit, member);
        }
        if (fit.accepted[sweep] == 0) break;
    }
}

template <class Real>
void sweep_at_depth(int depth, const void* fit, int n_sweeps) {
    const Fit<Real>& typed = *static_cast<const Fit<Real>*>(fit);
    if (depth == 1) sweep_members<Real, 1>(typed, n_sweeps);
    if (depth == 2) sweep_members<Real, 2>(typed, n_sweeps);
}

}  // namespace
}  // namespace qms22

extern "C" void sweep_float64(int depth, const void* fit, int n_sweeps) {
    qms22::sweep_at_depth<double>(depth, fit, n_sweeps);
}

extern "C" void sweep_float32(int depth, const void* fit, int n_sweeps) {
    qms22::sweep_at_depth<float>(depth, fit, n_sweeps);
}

extern "C" int size_of_fit(bool single) {
    return int(single ? sizeof(qms22::Fit<float>) : sizeof(qms22::Fit<double>));
}
