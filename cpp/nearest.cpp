#include "nearest.hpp"

#include <algorithm>
#include <limits>

#include "packed.hpp"
#include "team.hpp"

namespace qms22 {
namespace {

// A thread takes longer to start than to compare this many rows.
constexpr std::size_t kRowsPerThread = 64;

}  // namespace

template <class Real>
void nearest_products(const PlainRows<Real>& rows, const PlainRows<Real>& references,
                      const std::int64_t* skip, double floor, std::size_t n_threads,
                      NearestKernel<Real> kernel, double* products) {
    const std::size_t n = rows.n_rows, p = rows.n_columns;
    const std::size_t n_padded = round_up(references.n_rows, kNeighbors);
    const Aligned<Real> padded(n_padded, p);
    Real* const end = std::copy_n(references.data, references.n_rows * p, padded.get());
    std::fill(end, padded.get() + n_padded * p, std::numeric_limits<Real>::infinity());
    const NearestTask<Real> task = {rows.data,         padded.get(), skip,       p,
                                    references.n_rows, n_padded,     Real(floor)};
    n_threads = std::max<std::size_t>(1, std::min(n_threads, n / kRowsPerThread));
    const Aligned<Real> scratch(n_threads, p * kLanes<Real>);
    run_team(n_threads, [&](std::size_t rank, std::size_t n_ranks) {
        kernel(task, n * rank / n_ranks, n * (rank + 1) / n_ranks,
               scratch.get() + rank * p * kLanes<Real>, products);
    });
}

template void nearest_products(const PlainRows<double>&, const PlainRows<double>&,
                               const std::int64_t*, double, std::size_t, NearestKernel<double>,
                               double*);
template void nearest_products(const PlainRows<float>&, const PlainRows<float>&,
                               const std::int64_t*, double, std::size_t, NearestKernel<float>,
                               double*);

}  // namespace qms22
