// The coordinate perturbation method on a GPU: whole sweeps in one launch.
//
// A team of blocks works on a fit: one block, a cluster of them, or the whole grid. Every thread
// keeps its rows from the first to the last sweep, and nothing but sums passes between threads.
// Every warp of every block adds the same numbers in the same order and takes the same decisions,
// so the result is the same on every run.
#include "rows.hpp"

namespace qms22 {

constexpr int kWarp = 32;
constexpr int kMostWarps = 16;
constexpr unsigned kAllLanes = 0xffffffffu;

// Rows that lie beside each other and that a thread loads at once: of 16 bytes where there are
// many, fewer where more threads can share them.
template <class Real, int kRows>
struct Pack {
    Real of[kRows];
};

template <int kBytes>
struct WordOf;
template <>
struct WordOf<4> {
    using type = unsigned;
};
template <>
struct WordOf<8> {
    using type = uint2;
};
template <>
struct WordOf<16> {
    using type = uint4;
};

// A pack as the one word that travels.
template <class Real, int kRows>
union Packed {
    using Word = typename WordOf<kRows * sizeof(Real)>::type;
    Word word;
    Pack<Real, kRows> pack;
};

// Tells the compiler that memory is the device's: it need not find out at each access.
template <class T>
__device__ __forceinline__ T* in_device_memory(T* memory) {
    __builtin_assume(__isGlobal(memory));
    return memory;
}

template <int kRows, class Real>
__device__ __forceinline__ Pack<Real, kRows> load(const Real* from) {
    using Word = typename Packed<Real, kRows>::Word;
    return Packed<Real, kRows>{*reinterpret_cast<const Word*>(from)}.pack;
}

// The same of memory that no kernel writes to.
template <int kRows, class Real>
__device__ __forceinline__ Pack<Real, kRows> load_constant(const Real* from) {
    using Word = typename Packed<Real, kRows>::Word;
    return Packed<Real, kRows>{__ldg(reinterpret_cast<const Word*>(from))}.pack;
}

// Into the device's memory, in one piece, which the compiler would not do by itself, or into shared
// memory.
template <bool kShared = false, int kRows, class Real>
__device__ __forceinline__ void store(Real* to, const Pack<Real, kRows>& pack) {
    using Word = typename Packed<Real, kRows>::Word;
    Packed<Real, kRows> packed;
    packed.pack = pack;
    if constexpr (kShared)
        *reinterpret_cast<Word*>(to) = packed.word;
    else
        __stwb(reinterpret_cast<Word*>(to), packed.word);
}

// ---- Sums over all rows -----------------------------------------------------------------------

// kCount sums, a power of two, are added up at the same time: lane l deals with sum l % kCount, its
// slot.

// Adds up over lanes that deal with the same slot.
template <int kCount>
__device__ __forceinline__ double over_slots(double sum) {
#pragma unroll
    for (int offset = kCount; offset < kWarp; offset *= 2)
        sum += __shfl_xor_sync(kAllLanes, sum, offset);
    return sum;
}

// Adds up over the lanes of a warp. Halves what a lane holds and what it sends in every step, so
// that n sums cost little more than one.
template <int kCount, class Real>
__device__ __forceinline__ double over_lanes(Real (&sums)[kCount]) {
    const int lane = threadIdx.x % kWarp;
#pragma unroll
    for (int half = kCount / 2; half > 0; half /= 2) {
        const bool upper = lane & half;
#pragma unroll
        for (int i = 0; i < half; ++i) {
            const Real kept = upper ? sums[i + half] : sums[i];
            const Real sent = upper ? sums[i] : sums[i + half];
            sums[i] = kept + __shfl_xor_sync(kAllLanes, sent, half);
        }
    }
    return over_slots<kCount>(sums[0]);
}

// Adds up over the warps of a block. Two buffers in turn: a warp that writes one has met all
// others since they read it.
template <int kCount>
struct Warps {
    double sum[2][kMostWarps][kCount];

    __device__ __forceinline__ double add_up(double of_warp, unsigned meeting) {
        double(&sums)[kMostWarps][kCount] = sum[meeting % 2];
        const int lane = threadIdx.x % kWarp;
        if (lane < kCount) sums[threadIdx.x / kWarp][lane] = of_warp;
        __syncthreads();
        double total = 0;
#pragma unroll 4
        for (int warp = lane / kCount; warp < blockDim.x / kWarp; warp += kWarp / kCount)
            total += sums[warp][lane % kCount];
        return over_slots<kCount>(total);
    }
};

// Blocks tell each other their sums by letter. A letter is a sum whose last bit says in which
// round it was written, so that it needs no flag beside it and no order in memory: whoever sees
// the bit sees the sum. Letters of two rounds have room beside each other, as a block is never
// more than one round ahead; the bit turns when the room is used again, and memory starts as 0.
__device__ __forceinline__ unsigned long long letter(double sum, unsigned round) {
    const unsigned long long bits = __double_as_longlong(sum);
    return (bits & ~1ull) | (~round >> 1 & 1u);
}

__device__ __forceinline__ bool is_of(unsigned long long letter, unsigned round) {
    return (letter & 1u) == (~round >> 1 & 1u);
}

__device__ __forceinline__ double read(unsigned long long letter) {
    return __longlong_as_double(letter & ~1ull);
}

// One block.
struct Alone {
    template <int kCount>
    struct Mail {
        Warps<kCount> warps;
    };
    static __device__ int size() { return 1; }
    static __device__ int rank() { return 0; }
    static __device__ int fit() { return blockIdx.x; }
    template <int kCount>
    static __device__ void open(Mail<kCount>&) {}
    static __device__ void close() {}

    template <int kCount, class Real>
    static __device__ __forceinline__ double add_up(Mail<kCount>& mail, unsigned long long*,
                                                    Real (&sums)[kCount], unsigned round) {
        return mail.warps.add_up(over_lanes(sums), round);
    }
};

// A cluster: blocks write into each other's shared memory.
template <int kBlocks>
struct Cluster {
    template <int kCount>
    struct Mail {
        Warps<kCount> warps;
        unsigned long long letters[2][kBlocks][kCount];
    };
    static __device__ int size() { return kBlocks; }
    static __device__ int rank() { return blockIdx.x % kBlocks; }
    static __device__ int fit() { return blockIdx.x / kBlocks; }
    static __device__ __forceinline__ void meet() {
        asm volatile(
            "barrier.cluster.arrive.aligned;\n\t"
            "barrier.cluster.wait.aligned;" ::
                : "memory");
    }
    template <int kCount>
    static __device__ void open(Mail<kCount>& mail) {
        for (int i = threadIdx.x; i < 2 * kBlocks * kCount; i += blockDim.x)
            (&mail.letters[0][0][0])[i] = 0;
        meet();
    }
    // Nobody leaves while others may still write to it.
    static __device__ void close() { meet(); }

    static __device__ __forceinline__ void send(unsigned long long* to, int block,
                                                unsigned long long letter) {
        unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
        asm volatile(
            "mapa.shared::cluster.u32 %0, %0, %1;\n\t"
            "st.relaxed.cluster.shared::cluster.u64 [%0], %2;"
            : "+r"(address)
            : "r"(block), "l"(letter)
            : "memory");
    }
    static __device__ __forceinline__ unsigned long long look(const unsigned long long* at) {
        const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(at));
        unsigned long long letter;
        asm volatile("ld.relaxed.cluster.shared::cta.u64 %0, [%1];"
                     : "=l"(letter)
                     : "r"(address)
                     : "memory");
        return letter;
    }

    template <int kCount, class Real>
    static __device__ __forceinline__ double add_up(Mail<kCount>& mail, unsigned long long*,
                                                    Real (&sums)[kCount], unsigned round) {
        const double of_block = mail.warps.add_up(over_lanes(sums), round);
        const int slot = threadIdx.x % kCount, first = threadIdx.x % kWarp / kCount;
        unsigned long long(&letters)[kBlocks][kCount] = mail.letters[round % 2];
        if (threadIdx.x < kWarp)
            for (int block = first; block < kBlocks; block += kWarp / kCount)
                send(&letters[rank()][slot], block, letter(of_block, round));
        double total = 0;
        for (int block = first; block < kBlocks; block += kWarp / kCount) {
            unsigned long long found;
            do found = look(&letters[block][slot]);
            while (!is_of(found, round));
            total += read(found);
        }
        return over_slots<kCount>(total);
    }
};

// All blocks of the device, through its memory.
struct Grid {
    template <int kCount>
    struct Mail {
        Warps<kCount> warps;
    };
    static __device__ int size() { return gridDim.x; }
    static __device__ int rank() { return blockIdx.x; }
    static __device__ int fit() { return 0; }
    template <int kCount>
    static __device__ void open(Mail<kCount>&) {}
    static __device__ void close() {}

    static __device__ __forceinline__ void send(unsigned long long* to, unsigned long long letter) {
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(letter) : "memory");
    }
    static __device__ __forceinline__ unsigned long long look(const unsigned long long* at) {
        unsigned long long letter;
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(letter) : "l"(at) : "memory");
        return letter;
    }

    template <int kCount, class Real>
    static __device__ __forceinline__ double add_up(Mail<kCount>& mail, unsigned long long* letters,
                                                    Real (&sums)[kCount], unsigned round) {
        const double of_block = mail.warps.add_up(over_lanes(sums), 0);
        const int n_letters = gridDim.x * kCount;
        letters += round % 2 * n_letters;
        if (threadIdx.x < kCount)
            send(letters + blockIdx.x * kCount + threadIdx.x, letter(of_block, round));
        // Each thread waits for its share of the letters, several at a time.
        constexpr int kAtOnce = 6;
        double share = 0;
        for (int first = threadIdx.x; first < n_letters; first += kAtOnce * blockDim.x) {
            unsigned long long found[kAtOnce];
            bool all;
            do {
                all = true;
#pragma unroll
                for (int i = 0; i < kAtOnce; ++i) {
                    const int at = first + i * blockDim.x;
                    found[i] = at < n_letters ? look(letters + at) : letter(0.0, round);
                }
#pragma unroll
                for (int i = 0; i < kAtOnce; ++i) all &= is_of(found[i], round);
            } while (!all);
#pragma unroll
            for (int i = 0; i < kAtOnce; ++i) share += read(found[i]);
        }
        return mail.warps.add_up(over_slots<kCount>(share), 1);
    }
};

// ---- Passes over the rows ---------------------------------------------------------------------

// The rows of one thread, pack by pack, and where their state is. If all rows fit into the shared
// memory of their blocks, a block has neighbouring rows and keeps their state there. Else all
// blocks move through device memory side by side. A row stays with its thread for good.
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

// Makes the rows of this thread ready for trials on a member: residuals, f, S1, S2 and slack.
template <bool kResident, int kRows, class Real>
__device__ void enter(const Fit<Real>& fit, int member, const Real* entries,
                      const Share<Real>& share) {
    for_packs(share, [&](int i) {
        const long long row = share.begin + i;
        Pack<Real, kRows> f = {}, s1, s2, slack;
        for_residuals<kRows>(
            fit, entries, row, [&](int component, const Pack<Real, kRows>& residual) {
                Pack<Real, kRows> doubled;
#pragma unroll
                for (int k = 0; k < kRows; ++k) doubled.of[k] = residual.of[k] + residual.of[k];
                store(fit.residual2 + component * fit.stride + row, doubled);
                if (kResident && component == 0) store<true>(share.residual2 + i, doubled);
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

// One row's part of a pass on the O(m) road, from memory to memory. A rare thing, and kept out of
// the way of the others: they find the instructions of a pass at hand.
template <bool kResident, class Real, int kDepth>
__device__ __noinline__ Changes<Real, kDepth> visit_row(const Fit<Real>& fit, int member,
                                                        Pass<Real, kDepth> pass,
                                                        Share<Real> share, int i) {
    const long long row = share.begin + i;
    Real* const residual2 = fit.residual2 + row;
    Against<Real, kDepth> at;
    for (int k = 0; k < kDepth; ++k) {
        at.taken[k] = fit.x[pass.taken[k].feature * fit.stride + row];
        at.tried[k] = fit.x[pass.tried[k].feature * fit.stride + row];
    }
    at.residual2 = residual2[pass.tried[kDepth - 1].component * fit.stride];
    State<Real> state = {
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

// What a pack of rows brings along to a pass.
template <class Real, int kRows, int kDepth>
struct Brought {
    Pack<Real, kRows> residual2, f, s1, s2, slack;  // the state
    Pack<Real, kRows> after;                        // residual2 of the second component, if any
    Pack<Real, kRows> taken[kDepth], tried[kDepth];  // the features
};

// Takes the decided steps on a pack of rows, tries the next ones and adds the changes of the loss
// to the sums.
template <bool kResident, int kRows, class Real, int kDepth>
__device__ __forceinline__ void visit_pack(const Fit<Real>& fit, int member,
                                           const Pass<Real, kDepth>& pass,
                                           const Share<Real>& share, Real* result, int i,
                                           Brought<Real, kRows, kDepth>& brought, Real* sums) {
    const bool takes = pass.takes();
    const bool moves_on = takes || (kResident && pass.turn > 0 && pass.turn <= kDepth);
    unsigned beyond = 0;
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
        State<Real> state = {brought.residual2.of[k], brought.f.of[k], brought.s1.of[k],
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
        const Changes<Real, kDepth> changes =
            visit_row<kResident>(fit, member, pass, share, i + k);
#pragma unroll
        for (int j = 0; j < kChanges<kDepth>; ++j) sums[j] += changes.of[j];
    }
}

// One pass over the rows of this thread.
template <bool kResident, int kRows, class Real, int kDepth>
__device__ __forceinline__ void visit_rows(const Fit<Real>& fit, int member,
                                           const Pass<Real, kDepth>& pass,
                                           const Share<Real>& share, Real* sums) {
    const long long stride = fit.stride;
    const Real* const x = in_device_memory(fit.x) + share.begin;
    Real* const residual2 = in_device_memory(fit.residual2) + share.begin;
    const Real* const before =
        kResident ? share.residual2 : residual2 + pass.taken[0].component * stride;
    Real* const result =
        kResident ? share.residual2 : residual2 + pass.tried[0].component * stride;
    const Real* const after = residual2 + pass.tried[kDepth - 1].component * stride;
    for_packs(share, [&](int i) {
        // All loads first: the memory answers them at the same time.
        Brought<Real, kRows, kDepth> brought = {
            load<kRows>(before + i), load<kRows>(share.f + i), load<kRows>(share.s1 + i),
            load<kRows>(share.s2 + i), load<kRows>(share.slack + i)};
        if (pass.turn > 0) brought.after = load<kRows>(after + i);
#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
            brought.tried[k] = load_constant<kRows>(x + pass.tried[k].feature * stride + i);
            if (pass.taken[k].step != Real(0))
                brought.taken[k] = load_constant<kRows>(x + pass.taken[k].feature * stride + i);
        }
        visit_pack<kResident>(fit, member, pass, share, result, i, brought, sums);
    });
}

// ---- Sweeps -----------------------------------------------------------------------------------

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
    // Room for the largest share: columns start where packs may.
    const long long room = (n_packs + n_blocks - 1) / n_blocks * kRows;
    return {begin,         first,           n_rows,          step,           shared,
            shared + room, shared + 2 * room, shared + 3 * room, shared + 4 * room};
}

// What a sweep has come to: every lane adds up the changes that passed through its slot.
struct Tally {
    double change;
    int accepted;
};

// Reads the decisions off the totals, one per slot: which steps the next pass takes, and in which
// direction.
template <class Real, int kDepth>
__device__ __forceinline__ void decide(double total, double tolerance, Pass<Real, kDepth>& next,
                                       signed char* moves, int width, Tally& tally) {
    const unsigned fallen = __ballot_sync(kAllLanes, total < -tolerance);
    const int lane = threadIdx.x % kWarp;
    int slot = 0;
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
        Entry<Real>& entry = next.taken[k];
        const bool plus = fallen >> slot & 1u, minus = !plus && (fallen >> slot & 2u);
        if (threadIdx.x == 0 && entry.step != Real(0))
            moves[entry.component * width + entry.feature] = plus ? 1 : minus ? -1 : 0;
        entry.step = plus ? entry.step : minus ? -entry.step : Real(0);
        tally.accepted += plus || minus;
        if (lane == slot + !plus && (plus || minus)) tally.change += total;
        // The second entry was tried from three states; this is where that of this outcome is.
        slot = 2 + (plus ? 0 : minus ? 1 : 2) * kChanges<1>;
    }
}

// Sweeps over every entry of every member, until nothing moves any more.
template <class Team, bool kResident, int kRows, class Real, int kDepth>
__device__ __forceinline__ void sweep(const Fit<Real>* fits, int n_sweeps, bool fresh,
                                      unsigned long long* letters) {
    constexpr int kCount = kChanges<kDepth>;
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ typename Team::template Mail<kCount> mail;
    const Fit<Real>& fit = fits[Team::fit()];
    const int width = fit.n_features + 1, n_entries = fit.n_components * width;
    const int n_members = fit.n_members, rank = Team::rank();
    double* const coefficients = fit.coefficients + (long long)rank * n_members * n_entries;
    Real* const entries = fit.entries + (long long)rank * n_entries;
    signed char* const moves = fit.moves + (long long)rank * n_entries;
    const Share<Real> share = share_of<kResident, kRows>(fit, rank, Team::size(),
                                                         reinterpret_cast<Real*>(shared));
    const double tolerance = fit.tolerance, step_a = fit.step_a, step_b = fit.step_b;
    const auto next_pass = [&](const Pass<Real, kDepth>& pass, int first) {
        return pass_after(pass, first, n_entries, width, Real(step_a), Real(step_b));
    };
    // Makes a member's coefficients, moved by the steps just found, its entries at hand.
    const auto take_up = [&](int member, bool moved) {
        double* const own = coefficients + (long long)member * n_entries;
        __syncthreads();
        for (int e = threadIdx.x; e < n_entries; e += blockDim.x) {
            if (moved) own[e] += moves[e] * ((e + 1) % width ? step_a : step_b);
            entries[e] = Real(own[e]);
        }
        __syncthreads();
    };
    Team::open(mail);
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
                const double total = Team::add_up(mail, letters, sums, round++);
                decide(total, tolerance, pass, moves, width, tally);
            }
            take_up(member, true);
            evaluate<kRows>(fit, member, entries, share);
        }
        // Every slot is dealt with in several lanes; one of them counts.
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
