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

extern "C" int size_of(int which) {
    const unsigned long sizes[] = {sizeof(qms22::Comparison<double>),
                                   sizeof(qms22::Comparison<float>), sizeof(qms22::Trees),
                                   sizeof(qms22::Node)};
    return int(sizes[which]);
}
