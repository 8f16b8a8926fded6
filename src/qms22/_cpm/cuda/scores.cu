// Scaled rows, member values and outlier scores, one thread per row, rounded as on the CPU.
#include "rows.hpp"

namespace qms22 {

// Rows of any memory order, strides counted in elements, and the members to evaluate there.
struct Scored {
    const double* x;
    long long n_rows, row_stride, column_stride;
    const double* coefficients;  // (m, q, p + 1), b last
    int n_members, n_components, n_features;
    double floor;
};

template <int kCount>
__device__ __forceinline__ double sum_of_squares(const Scored& scored, const double* entries,
                                                 const double* x, double sum) {
    const int width = scored.n_features + 1;
    double residual[kCount] = {};
    for (int c = 0; c < scored.n_features; ++c)
        add_feature(entries + c, width, x[c * scored.column_stride], residual);
    add_feature(entries + scored.n_features, width, -1.0, residual);
    for (int r = 0; r < kCount; ++r) sum += residual[r] * residual[r];
    return sum;
}

__device__ double member_value(const Scored& scored, int member, long long row) {
    constexpr int kAtOnce = 5;
    const int width = scored.n_features + 1, n_components = scored.n_components;
    const double* entries = scored.coefficients + (long long)member * n_components * width;
    const double* const x = scored.x + row * scored.row_stride;
    double f = 0;
    int r = 0;
    for (; r + kAtOnce <= n_components; r += kAtOnce, entries += kAtOnce * width)
        f = sum_of_squares<kAtOnce>(scored, entries, x, f);
    for (; r < n_components; ++r, entries += width) f = sum_of_squares<1>(scored, entries, x, f);
    return larger(f, scored.floor);
}

}  // namespace qms22

extern "C" __global__ void member_values(qms22::Scored scored, double* values) {
    const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= scored.n_rows) return;
    for (int member = 0; member < scored.n_members; ++member)
        values[row * scored.n_members + member] = qms22::member_value(scored, member, row);
}

extern "C" __global__ void outlier_scores(qms22::Scored scored, double* scores) {
    const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= scored.n_rows) return;
    const double first = qms22::member_value(scored, 0, row);
    double score = 0;
    for (int member = 1; member < scored.n_members; ++member) {
        const double value = qms22::member_value(scored, member, row);
        score += qms22::larger((value - first) / first, 0.0);
    }
    scores[row] = score;
}

// (x / peak - center) * factor, cut off at +-limit, into rows in C order.
extern "C" __global__ void scale_rows(const double* x, long long n_rows, long long row_stride,
                                      long long column_stride, int n_features, const double* peak,
                                      const double* center, const double* factor, double limit,
                                      double* scaled) {
    const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n_rows) return;
    for (int c = 0; c < n_features; ++c) {
        const double value = x[row * row_stride + c * column_stride];
        const double result = (value / peak[c] - center[c]) * factor[c];
        scaled[row * n_features + c] = result < -limit ? -limit : (result > limit ? limit : result);
    }
}
