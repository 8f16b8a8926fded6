// The limit that memory sets: the kernel's passes over its arrays, with almost no arithmetic.
#include <cstddef>

namespace {

// One pass reads six or seven arrays of doubles side by side; if it takes an accepted step, it
// writes the first three of them back. `__restrict` tells the compiler that the arrays do not
// overlap.
double read(const double* __restrict a, const double* __restrict b, const double* __restrict c,
            const double* __restrict d, const double* __restrict e, const double* __restrict f,
            std::size_t size) {
    double sum = 0;
    for (std::size_t k = 0; k < size; ++k) sum += (a[k] + b[k]) + (c[k] + d[k]) + (e[k] + f[k]);
    return sum;
}

double read_and_write(double* __restrict a, double* __restrict b, double* __restrict c,
                      const double* __restrict d, const double* __restrict e,
                      const double* __restrict f, const double* __restrict g, std::size_t size) {
    double sum = 0;
    for (std::size_t k = 0; k < size; ++k) {
        a[k] += f[k];
        b[k] += g[k];
        c[k] += f[k];
        sum += d[k] + e[k];
    }
    return sum;
}

}  // namespace

// Repeats a pass `repeats` times over `memory`, an arena of arrays `stride` doubles apart:
// residual, f, slack, S1 and S2 stay, the columns of x change from pass to pass as they do in a
// sweep. `accepting`: the pass takes an accepted step before its trial.
extern "C" double stream(double* memory, std::size_t stride, std::size_t size,
                         std::size_t n_columns, bool accepting, std::size_t repeats) {
    double* const residual = memory;
    double* const f = memory + stride;
    double* const slack = memory + 2 * stride;
    const double* const s1 = memory + 3 * stride;
    const double* const s2 = memory + 4 * stride;
    const double* const columns = memory + 5 * stride;
    double sum = 0;
    for (std::size_t i = 0; i < repeats; ++i) {
        const double* const x = columns + i % n_columns * stride;
        const double* const next = columns + (i + 1) % n_columns * stride;
        sum += accepting ? read_and_write(residual, f, slack, s1, s2, x, next, size)
                         : read(residual, f, slack, s1, s2, x, size);
    }
    return sum;
}
