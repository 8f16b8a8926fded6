// The GPU's kernels of views on the host: as many blocks as there are rows, of one thread each.
struct Index {
    unsigned x;
};
static Index blockIdx, blockDim = {1}, threadIdx = {0};

#define __device__
#define __global__
#define __shared__
#define __syncthreads()

// Shared memory of a block, of _TILE_BYTES in views.py.
double tile64[4096];
float tile32[8192];

#include "nearest.cu"
#include "views.cu"

template <class Kernel, class... Arguments>
static void launch(long long n_rows, Kernel kernel, const Arguments&... arguments) {
    for (blockIdx.x = 0; blockIdx.x < n_rows; ++blockIdx.x) kernel(arguments...);
}

extern "C" void run_nearest_float64(long long n_rows, const void* task, double* products) {
    const auto& typed = *static_cast<const qms22::Comparison<double>*>(task);
    launch(n_rows, nearest_float64, typed, products);
}

extern "C" void run_nearest_float32(long long n_rows, const void* task, double* products) {
    const auto& typed = *static_cast<const qms22::Comparison<float>*>(task);
    launch(n_rows, nearest_float32, typed, products);
}

extern "C" void run_forest_scores(long long n_rows, const void* trees, const unsigned char* bins,
                                  long long stride, double* scores) {
    launch(n_rows, forest_scores, *static_cast<const qms22::Trees*>(trees), bins, stride, scores);
}

extern "C" void run_find_bins(long long n_rows, const void* rows, const double* edges,
                              long long n_edges, unsigned char* bins) {
    launch(n_rows, find_bins, *static_cast<const qms22::Rows*>(rows), edges, int(n_edges), bins);
}

extern "C" void run_log_p_values(long long n_rows, const double* scores, long long n,
                                 const double* ascending, long long n_known,
                                 const double* deviation, double* logarithms) {
    launch(n_rows, log_p_values, scores, n, ascending, n_known, *deviation, logarithms);
}

extern "C" void run_hash_rows(long long n_rows, const void* rows, unsigned long long* keys) {
    launch(n_rows, hash_rows, *static_cast<const qms22::Rows*>(rows), keys);
}

extern "C" void run_replace_known(long long n_rows, const unsigned long long* keys, long long n,
                                  const unsigned long long* known, const double* kept,
                                  long long n_known, const double* scores, double* replaced) {
    launch(n_rows, replace_known, keys, n, known, kept, n_known, scores, replaced);
}

extern "C" void run_add_logarithms(long long n_rows, const double* terms, long long n,
                                   double* totals) {
    launch(n_rows, add_logarithms, terms, n, totals);
}

extern "C" void run_add_weighted(long long n_rows, const double* terms, const double* weight,
                                 long long n, double* totals) {
    launch(n_rows, add_weighted, terms, *weight, n, totals);
}

extern "C" int size_of(int which) {
    const unsigned long sizes[] = {sizeof(qms22::Comparison<double>),
                                   sizeof(qms22::Comparison<float>), sizeof(qms22::Trees),
                                   sizeof(qms22::Node), sizeof(qms22::Rows)};
    return int(sizes[which]);
}
