// Distances of rows to the nearest of some references, as weighted products.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nearest_kernel.hpp"

namespace qms22 {

// A table of numbers, one row after the other.
template <class Real>
struct PlainRows {
    const Real* data;
    std::size_t n_rows, n_columns;
};

// In single precision a reference's number must be exact.
inline constexpr std::size_t kMostReferences = std::size_t{1} << 24U;

// Computes for every row the product of (d_i + floor)^(2^-i) over its kNeighbors nearest
// references, where d_i is the distance to the i-th nearest. The reference number skip[row] does
// not count unless it is -1; skip may be null. The number of threads changes no bit.
template <class Real>
void nearest_products(const PlainRows<Real>& rows, const PlainRows<Real>& references,
                      const std::int64_t* skip, double floor, std::size_t n_threads,
                      NearestKernel<Real> kernel, double* products);

}  // namespace qms22
