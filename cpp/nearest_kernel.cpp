// Distances to the nearest references, compiled once per instruction set with QMS22_ISA naming it.
//
// A lane is a row. So the bits of a row's result depend neither on the instruction set nor on the
// rows beside it, and finding the smallest distances takes no branches: a sorting network does it.
// Only the table at the end may have external linkage, as in kernel.cpp.
#include "nearest_kernel.hpp"

#include <utility>

#include "lanes.hpp"

namespace qms22::QMS22_ISA {
namespace {

// Places to compare and exchange, pair by pair.
template <std::size_t kSize>
struct Network {
    std::size_t low[kSize], high[kSize];
};

// Batcher's odd-even merge sort.
constexpr std::size_t kSortSize = 63;
constexpr Network<kSortSize> sorting_network() {
    Network<kSortSize> network = {};
    std::size_t size = 0;
    for (std::size_t p = 1; p < kNeighbors; p *= 2)
        for (std::size_t k = p; k > 0; k /= 2)
            for (std::size_t j = k % p; j + k < kNeighbors; j += 2 * k)
                for (std::size_t i = j; i < j + k && i + k < kNeighbors; ++i)
                    if (i / (2 * p) == (i + k) / (2 * p)) {
                        network.low[size] = i;
                        network.high[size++] = i + k;
                    }
    return network;
}

// Batcher's bitonic merge: sorts what rises or falls and then turns once.
constexpr std::size_t kMergeSize = 32;
constexpr Network<kMergeSize> merging_network() {
    Network<kMergeSize> network = {};
    std::size_t size = 0;
    for (std::size_t k = kNeighbors / 2; k > 0; k /= 2)
        for (std::size_t i = 0; i < kNeighbors; ++i)
            if (i / k % 2 == 0) {
                network.low[size] = i;
                network.high[size++] = i + k;
            }
    return network;
}

constexpr Network<kSortSize> kSort = sorting_network();
constexpr Network<kMergeSize> kMerge = merging_network();

template <class V>
inline void exchange(V& low, V& high) {
    const V smallest = smaller(low, high);
    high = larger(low, high);
    low = smallest;
}

// Unrolled, so that all vectors can stay in registers.
template <const auto& network, class V, std::size_t... i>
inline void run_network(V (&values)[kNeighbors], std::index_sequence<i...>) {
    (exchange(values[network.low[i]], values[network.high[i]]), ...);
}

// Puts the smallest of `nearest`, which is sorted, and of `others` into `nearest`, sorted. Changes
// the order of `others`.
template <class V>
inline void merge(V (&nearest)[kNeighbors], V (&others)[kNeighbors]) {
    run_network<kSort>(others, std::make_index_sequence<kSortSize>{});
    for (std::size_t i = 0; i < kNeighbors; ++i)
        nearest[i] = smaller(nearest[i], others[kNeighbors - 1 - i]);
    run_network<kMerge>(nearest, std::make_index_sequence<kMergeSize>{});
}

// Squared distances to kCount references. Several at once share the loads of the rows. The order of
// each sum determines the bits of the result.
template <class Real, std::size_t kCount>
inline void squared_distances(const Real* columns, const Real* references, std::size_t n_features,
                              Vector<Real>* distances) {
    Vector<Real> sums[kCount] = {};
    for (std::size_t c = 0; c < n_features; ++c) {
        const Vector<Real> x = load(columns + c * kWidth<Real>);
        for (std::size_t r = 0; r < kCount; ++r) {
            const Vector<Real> difference = x - references[r * n_features + c];
            sums[r] += difference * difference;
        }
    }
    for (std::size_t r = 0; r < kCount; ++r) distances[r] = sums[r];
}

// The product of d_i^(2^-i) of kWidth rows, whose columns lie one after the other.
template <class Real>
inline Vector<Real> product(const NearestTask<Real>& task, const Real* columns, Vector<Real> skip) {
    using V = Vector<Real>;
    constexpr std::size_t kAtOnce = 8;
    const V infinity = fill(kInfinity<Real>), one = fill(Real(1));
    V nearest[kNeighbors];
    for (V& distance : nearest) distance = infinity;
    for (std::size_t first = 0; first < task.n_padded; first += kNeighbors) {
        V others[kNeighbors];
        for (std::size_t r = 0; r < kNeighbors; r += kAtOnce)
            squared_distances<Real, kAtOnce>(columns,
                                             task.references + (first + r) * task.n_features,
                                             task.n_features, others + r);
        if (task.skip)
            for (std::size_t r = 0; r < kNeighbors; ++r)
                others[r] = choose(skip == fill(Real(first + r)), infinity, others[r]);
        merge(nearest, others);
    }
    // From the farthest to the nearest: a square root halves the exponents of all before it. Roots
    // round the same everywhere, which powers and logarithms do not.
    const V n_counted = Real(task.n_references) - choose(skip < fill(Real(0)), V{}, one);
    V result = one;
    for (std::size_t i = kNeighbors; i-- > 0;) {
        const V distance = square_root(nearest[i]) + task.floor;
        result = choose(n_counted > fill(Real(i)), square_root(result * distance), result);
    }
    return result;
}

template <class Real>
void nearest(const NearestTask<Real>& task, std::size_t begin, std::size_t end, Real* scratch,
             double* products) {
    for (std::size_t first = begin; first < end; first += kWidth<Real>) {
        alignas(Vector<Real>) Real skip[kWidth<Real>];
        for (std::size_t i = 0; i < kWidth<Real>; ++i) {
            // Lanes beyond the end repeat the last row.
            const std::size_t row = first + i < end ? first + i : end - 1;
            const Real* const values = task.rows + row * task.n_features;
            for (std::size_t c = 0; c < task.n_features; ++c)
                scratch[c * kWidth<Real> + i] = values[c];
            skip[i] = task.skip ? Real(task.skip[row]) : Real(-1);
        }
        const Vector<Real> result = product(task, scratch, load(skip));
        for (std::size_t i = 0; i < kWidth<Real> && first + i < end; ++i)
            products[first + i] = double(lane(result, i));
    }
}

}  // namespace

extern const NearestKernels nearest_kernels;
const NearestKernels nearest_kernels = {nearest<double>, nearest<float>};

}  // namespace qms22::QMS22_ISA
