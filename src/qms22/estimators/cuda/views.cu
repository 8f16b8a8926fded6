// Views of the ensemble, one thread per row, rounded as on the CPU.
#include "views.hpp"

extern "C" __global__ void forest_scores(qms22::Trees trees, const unsigned char* bins,
                                         long long n_rows, double* scores) {
    const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n_rows) scores[row] = qms22::forest_score(trees, bins, n_rows, row);
}

extern "C" __global__ void log_p_values(const double* scores, long long n_rows,
                                        const double* ascending, long long n, double deviation,
                                        double* logarithms) {
    const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n_rows) logarithms[row] = qms22::log_p_value(ascending, n, deviation, scores[row]);
}

extern "C" __global__ void hash_rows(qms22::Rows rows, unsigned long long* keys) {
    const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows.n_rows) keys[row] = qms22::hash_row(rows, row);
}

extern "C" __global__ void replace_known(const unsigned long long* keys, long long n_rows,
                                         const unsigned long long* known, const double* kept,
                                         long long n_known, const double* scores,
                                         double* replaced) {
    const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n_rows) return;
    const long long place = qms22::count_below(known, n_known, keys[row], false);
    const bool is_known = place < n_known && known[place] == keys[row];
    replaced[row] = is_known ? kept[place] : scores[row];
}

extern "C" __global__ void find_bins(qms22::Rows rows, const double* edges, int n_edges,
                                     unsigned char* bins) {
    const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows.n_rows) return;
    for (int c = 0; c < rows.n_features; ++c) {
        const double value = rows.values[row * rows.row_stride + c * rows.column_stride];
        bins[c * rows.n_rows + row] = (unsigned char)qms22::count_below(
            edges + (long long)c * n_edges, n_edges, value, false);
    }
}

extern "C" __global__ void add_logarithms(const double* terms, long long n_rows, double* totals) {
    const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n_rows) totals[row] = qms22::add_logarithms(totals[row], terms[row]);
}

extern "C" __global__ void add_weighted(const double* terms, double weight, long long n_rows,
                                        double* totals) {
    const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n_rows) totals[row] += weight * terms[row];
}
