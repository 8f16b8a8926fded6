// The coordinate perturbation method on a GPU: whole sweeps in one launch.
//
// A team of blocks works on a fit. Every thread keeps its rows from the first to the last sweep,
// and only sums pass between threads. All threads have the same sums and take the same decisions.
#include "passes.hpp"
#include "rows.hpp"
#include "teams.hpp"

namespace qms22 {

template <bool kResident, int kRows, class Real>
__device__ Share<Real> share_of(const Fit<Real>& fit, int rank, int n_blocks, Real* shared) {
    const int step = blockDim.x * kRows, first = threadIdx.x * kRows;
    if (!kResident)
        return {0,
                rank * step + first,
                int(fit.n_rows),
                n_blocks * step,
                nullptr,
                in_device_memory(fit.f),
                in_device_memory(fit.s1),
                in_device_memory(fit.s2),
                in_device_memory(fit.slack)};
    const long long n_packs = fit.n_rows / kRows;
    const long long begin = n_packs * rank / n_blocks * kRows;
    const int n_rows = int(n_packs * (rank + 1) / n_blocks * kRows - begin);
    // Memory for the largest share; columns start where packs may.
    const long long room = (n_packs + n_blocks - 1) / n_blocks * kRows;
    return {begin,
            first,
            n_rows,
            step,
            shared,
            shared + room,
            shared + 2 * room,
            shared + 3 * room,
            shared + 4 * room};
}

// The totals of a sweep: every lane adds up the changes of its slot.
struct Tally {
    double change;
    int accepted;
};

// Decides from the totals, one per slot, which steps the next pass takes and in which direction.
template <class Real, int kDepth>
__device__ __forceinline__ void decide(double total, double tolerance, Pass<Real, kDepth>& next,
                                       signed char* moves, int width, Tally& tally) {
    const unsigned fallen = __ballot_sync(kAllLanes, total < -tolerance);
    const int lane = threadIdx.x % kWarp;
    int slot = 0;
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
        Step<Real>& entry = next.taken[k];
        const bool plus = fallen >> slot & 1u, minus = !plus && (fallen >> slot & 2u);
        if (threadIdx.x == 0 && entry.size != Real(0))
            moves[entry.component * width + entry.feature] = plus ? 1 : minus ? -1 : 0;
        entry.size = plus ? entry.size : minus ? -entry.size : Real(0);
        tally.accepted += plus || minus;
        if (lane == slot + !plus && (plus || minus)) tally.change += total;
        // The second entry was tried from three states; this is the slot for this outcome.
        slot = 2 + (plus ? 0 : minus ? 1 : 2) * kChanges<1>;
    }
}

// Makes sweeps over every entry of every member until a sweep takes no step.
template <class Team, bool kResident, int kRows, class Real, int kDepth>
__device__ __forceinline__ void sweep(const Fit<Real>* fits, int n_sweeps, bool fresh,
                                      unsigned long long* tagged_sums) {
    constexpr int kCount = kChanges<kDepth>;
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ typename Team::template Buffers<kCount> buffers;
    const Fit<Real>& fit = fits[Team::fit()];
    const int width = fit.n_features + 1, n_entries = fit.n_components * width;
    const int n_members = fit.n_members, rank = Team::rank();
    double* const coefficients = fit.coefficients + (long long)rank * n_members * n_entries;
    Real* const entries = fit.entries + (long long)rank * n_entries;
    signed char* const moves = fit.moves + (long long)rank * n_entries;
    const Share<Real> share =
        share_of<kResident, kRows>(fit, rank, Team::size(), reinterpret_cast<Real*>(shared));
    const double tolerance = fit.tolerance, step_a = fit.step_a, step_b = fit.step_b;
    const auto next_pass = [&](const Pass<Real, kDepth>& pass, int first) {
        return pass_after(pass, first, n_entries, width, Real(step_a), Real(step_b));
    };
    // Copies a member's coefficients to `entries`; if `moved`, applies the steps of this sweep
    // first.
    const auto take_up = [&](int member, bool moved) {
        double* const own = coefficients + (long long)member * n_entries;
        __syncthreads();
        for (int e = threadIdx.x; e < n_entries; e += blockDim.x) {
            if (moved) own[e] += moves[e] * ((e + 1) % width ? step_a : step_b);
            entries[e] = Real(own[e]);
        }
        __syncthreads();
    };
    Team::open(buffers);
    for (int member = 0; fresh && member < n_members; ++member) {
        take_up(member, false);
        evaluate<kRows>(fit, member, entries, share);
    }
    unsigned round = 0;
    for (int n_done = 0; n_done < n_sweeps; ++n_done) {
        Tally tally = {0, 0};
        for (int member = 0; member < n_members; ++member) {
            take_up(member, false);
            enter<kResident, kRows>(fit, member, entries, share);
            Pass<Real, kDepth> pass = next_pass({}, 0);
            for (int e = kDepth; e < n_entries + kDepth; e += kDepth) {
                Real sums[kCount] = {};
                visit_rows<kResident, kRows>(fit, member, pass, share, sums);
                pass = next_pass(pass, e);
                const double total = Team::add_up(buffers, tagged_sums, sums, round++);
                decide(total, tolerance, pass, moves, width, tally);
            }
            take_up(member, true);
            evaluate<kRows>(fit, member, entries, share);
        }
        // Several lanes handle every slot; one of them counts.
        const double change = over_slots<1>(threadIdx.x % kWarp < kCount ? tally.change : 0.0);
        if (rank == 0 && threadIdx.x == 0) {
            fit.change[n_done] = change;
            fit.accepted[n_done] = tally.accepted;
        }
        if (tally.accepted == 0) break;
    }
    Team::close();
}

}  // namespace qms22
