// Distances to the nearest references: the part that is compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qms22 {

// The nearest references that count: the weights of others would be below 2e-5.
constexpr std::size_t kNeighbors = 16;

// Rows and the references that they are compared with. Owns no memory.
template <class Real>
struct NearestTask {
    const Real* rows;          // (n, p)
    const Real* references;    // (n_padded, p): n_references of them, then infinite ones
    const std::int64_t* skip;  // (n): a reference that does not count for the row, or -1; or null
    std::size_t n_features;    // p
    std::size_t n_references;
    std::size_t n_padded;  // a multiple of kNeighbors
    Real floor;            // added to every distance
};

// Computes the product of d_i^(2^-i), where d_i is the distance to the i-th nearest reference, of
// rows [begin, end). The scratch is aligned memory for p columns of kLanes rows.
template <class Real>
using NearestKernel = void (*)(const NearestTask<Real>&, std::size_t begin, std::size_t end,
                               Real* scratch, double* products);

struct NearestKernels {
    NearestKernel<double> in_double;
    NearestKernel<float> in_float;
};

}  // namespace qms22
