// Distances to references, one thread per row, rounded as on the CPU. QMS22_BITS names the one
// precision to compile: this takes longer than all other kernels of views.
#include "views.hpp"

namespace qms22 {

// References pass through shared memory, `groups_per_tile` groups at a time. With so many columns
// that not even one group fits they are read where they are.
template <class Real>
__device__ void compare(const Comparison<Real>& task, Real* tile, double* products) {
    const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const bool is_row = row < task.n_rows;
    const long long skipped = is_row && task.skip ? task.skip[row] : -1;
    const long long group_size = (long long)task.n_features * kGroup;
    const int step = task.groups_per_tile > 0 ? task.groups_per_tile : task.n_groups;
    Nearest<Real> nearest;
    nearest.clear();
    for (int first = 0; first < task.n_groups; first += step) {
        const int left = task.n_groups - first, n_groups = left < step ? left : step;
        const Real* groups = task.references + first * group_size;
        if (task.groups_per_tile > 0) {
            __syncthreads();
            for (int i = threadIdx.x; i < n_groups * group_size; i += blockDim.x)
                tile[i] = groups[i];
            __syncthreads();
            groups = tile;
        }
        if (!is_row) continue;
        for (int group = 0; group < n_groups; ++group, groups += group_size)
            add_group(task, row, groups, (first + group) * kGroup, skipped, nearest);
    }
    if (is_row) products[row] = product(task, nearest, skipped);
}

}  // namespace qms22

#if QMS22_BITS != 32
extern "C" __global__ void nearest_float64(qms22::Comparison<double> task, double* products) {
    extern __shared__ double tile64[];
    qms22::compare(task, tile64, products);
}
#endif

#if QMS22_BITS != 64
extern "C" __global__ void nearest_float32(qms22::Comparison<float> task, double* products) {
    extern __shared__ float tile32[];
    qms22::compare(task, tile32, products);
}
#endif
