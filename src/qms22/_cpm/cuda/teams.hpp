// Teams of blocks that work on one fit, and how they add up sums over all rows.
//
// A team is one block, a cluster of them, or the whole grid. Every warp of every block adds the
// same numbers in the same order, so all threads have the same totals, and the result is the same
// on every run.
#pragma once

namespace qms22 {

constexpr int kWarp = 32;
constexpr int kMostWarps = 16;
constexpr unsigned kAllLanes = 0xffffffffu;

// kCount sums, a power of two, are added up at the same time: lane l handles sum l % kCount, its
// slot.

// Adds up over the lanes that handle the same slot.
template <int kCount>
__device__ __forceinline__ double over_slots(double sum) {
#pragma unroll
    for (int offset = kCount; offset < kWarp; offset *= 2)
        sum += __shfl_xor_sync(kAllLanes, sum, offset);
    return sum;
}

// Adds up over the lanes of a warp. Every step halves what a lane holds and sends, so n sums cost
// little more than one.
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

// Adds up over the warps of a block. Two buffers are used in turn: a warp that writes to one has
// synchronized with all others since they read it.
template <int kCount>
struct Warps {
    double sum[2][kMostWarps][kCount];

    __device__ __forceinline__ double add_up(double of_warp, unsigned turn) {
        double (&sums)[kMostWarps][kCount] = sum[turn % 2];
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

// Blocks exchange tagged sums: the last bit of a sum is a tag that says in which round it was
// written. So it needs no flag and no memory order: a reader that sees the tag sees the sum. There
// is memory for two rounds, as a block is never more than one round ahead; the tag flips each time
// the memory is used again, and memory starts as 0.
__device__ __forceinline__ unsigned long long tagged_sum(double sum, unsigned round) {
    const unsigned long long bits = __double_as_longlong(sum);
    return (bits & ~1ull) | (~round >> 1 & 1u);
}

__device__ __forceinline__ bool is_of(unsigned long long tagged, unsigned round) {
    return (tagged & 1u) == (~round >> 1 & 1u);
}

__device__ __forceinline__ double sum_of(unsigned long long tagged) {
    return __longlong_as_double(tagged & ~1ull);
}

// One block.
struct Alone {
    template <int kCount>
    struct Buffers {
        Warps<kCount> warps;
    };
    static __device__ int size() { return 1; }
    static __device__ int rank() { return 0; }
    static __device__ int fit() { return blockIdx.x; }
    template <int kCount>
    static __device__ void open(Buffers<kCount>&) {}
    static __device__ void close() {}

    template <int kCount, class Real>
    static __device__ __forceinline__ double add_up(Buffers<kCount>& buffers, unsigned long long*,
                                                    Real (&sums)[kCount], unsigned round) {
        return buffers.warps.add_up(over_lanes(sums), round);
    }
};

// A cluster: blocks write into each other's shared memory.
template <int kBlocks>
struct Cluster {
    template <int kCount>
    struct Buffers {
        Warps<kCount> warps;
        unsigned long long tagged_sums[2][kBlocks][kCount];
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
    static __device__ void open(Buffers<kCount>& buffers) {
        for (int i = threadIdx.x; i < 2 * kBlocks * kCount; i += blockDim.x)
            (&buffers.tagged_sums[0][0][0])[i] = 0;
        meet();
    }
    // No block ends while others may still write to its shared memory.
    static __device__ void close() { meet(); }

    static __device__ __forceinline__ void send(unsigned long long* to, int block,
                                                unsigned long long tagged) {
        unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
        asm volatile(
            "mapa.shared::cluster.u32 %0, %0, %1;\n\t"
            "st.relaxed.cluster.shared::cluster.u64 [%0], %2;"
            : "+r"(address)
            : "r"(block), "l"(tagged)
            : "memory");
    }
    static __device__ __forceinline__ unsigned long long poll(const unsigned long long* at) {
        const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(at));
        unsigned long long tagged;
        asm volatile("ld.relaxed.cluster.shared::cta.u64 %0, [%1];"
                     : "=l"(tagged)
                     : "r"(address)
                     : "memory");
        return tagged;
    }

    template <int kCount, class Real>
    static __device__ __forceinline__ double add_up(Buffers<kCount>& buffers, unsigned long long*,
                                                    Real (&sums)[kCount], unsigned round) {
        const double of_block = buffers.warps.add_up(over_lanes(sums), round);
        const int slot = threadIdx.x % kCount, first = threadIdx.x % kWarp / kCount;
        unsigned long long (&tagged_sums)[kBlocks][kCount] = buffers.tagged_sums[round % 2];
        if (threadIdx.x < kWarp)
            for (int block = first; block < kBlocks; block += kWarp / kCount)
                send(&tagged_sums[rank()][slot], block, tagged_sum(of_block, round));
        double total = 0;
        for (int block = first; block < kBlocks; block += kWarp / kCount) {
            unsigned long long found;
            do found = poll(&tagged_sums[block][slot]);
            while (!is_of(found, round));
            total += sum_of(found);
        }
        return over_slots<kCount>(total);
    }
};

// All blocks of the device, through its memory.
struct Grid {
    template <int kCount>
    struct Buffers {
        Warps<kCount> warps;
    };
    static __device__ int size() { return gridDim.x; }
    static __device__ int rank() { return blockIdx.x; }
    static __device__ int fit() { return 0; }
    template <int kCount>
    static __device__ void open(Buffers<kCount>&) {}
    static __device__ void close() {}

    static __device__ __forceinline__ void send(unsigned long long* to, unsigned long long tagged) {
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(tagged) : "memory");
    }
    static __device__ __forceinline__ unsigned long long poll(const unsigned long long* at) {
        unsigned long long tagged;
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(tagged) : "l"(at) : "memory");
        return tagged;
    }

    template <int kCount, class Real>
    static __device__ __forceinline__ double add_up(Buffers<kCount>& buffers,
                                                    unsigned long long* tagged_sums,
                                                    Real (&sums)[kCount], unsigned round) {
        const double of_block = buffers.warps.add_up(over_lanes(sums), 0);
        const int n_sums = gridDim.x * kCount;
        tagged_sums += round % 2 * n_sums;
        if (threadIdx.x < kCount)
            send(tagged_sums + blockIdx.x * kCount + threadIdx.x, tagged_sum(of_block, round));
        // Each thread waits for its share of the sums, several at a time.
        constexpr int kAtOnce = 6;
        double share = 0;
        for (int first = threadIdx.x; first < n_sums; first += kAtOnce * blockDim.x) {
            unsigned long long found[kAtOnce];
            bool all;
            do {
                all = true;
#pragma unroll
                for (int i = 0; i < kAtOnce; ++i) {
                    const int at = first + i * blockDim.x;
                    found[i] = at < n_sums ? poll(tagged_sums + at) : tagged_sum(0.0, round);
                }
#pragma unroll
                for (int i = 0; i < kAtOnce; ++i) all &= is_of(found[i], round);
            } while (!all);
#pragma unroll
            for (int i = 0; i < kAtOnce; ++i) share += sum_of(found[i]);
        }
        return buffers.warps.add_up(over_slots<kCount>(share), 1);
    }
};

}  // namespace qms22
