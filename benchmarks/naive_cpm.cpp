// The coordinate perturbation method as one would first write it in C++, for benchmarks and tests.
//
// Every trial evaluates the terms of the loss that contain f_i, member by member: O(n m) per trial
// and direction. The compiler can vectorise the loops: feature-major data, a block of rows at a
// time, weights constant inside a group, members without weight skipped. With kReciprocals the
// values 1 / f_j are stored beside f_j, so that a row costs one division instead of 2 (m - 1): the
// first improvement one would make.
#include <algorithm>
#include <cstddef>
#include <vector>

namespace {

constexpr std::size_t kBlock = 512;

template <class Real, bool kReciprocals>
struct Naive {
    std::size_t n, p, q, m, n_groups;
    const Real* x;                   // (p, n)
    const std::size_t* group_start;  // (n_groups + 1)
    const Real* group_weight;        // (m, n_groups)
    Real alpha, step_a, step_b;
    double tolerance;
    Real* a;                           // (m, q, p)
    Real* b;                           // (m, q)
    std::vector<Real> value, inverse;  // (m, n)
    std::vector<Real> residual;        // (q, n)

    void evaluate(std::size_t i) {
        Real* f = value.data() + i * n;
        std::fill(f, f + n, Real(0));
        for (std::size_t r = 0; r < q; ++r) {
            Real* res = residual.data() + r * n;
            std::fill(res, res + n, -b[i * q + r]);
            for (std::size_t c = 0; c < p; ++c) {
                const Real coefficient = a[(i * q + r) * p + c];
                for (std::size_t k = 0; k < n; ++k) res[k] += coefficient * x[c * n + k];
            }
            for (std::size_t k = 0; k < n; ++k) f[k] += res[k] * res[k];
        }
        if (kReciprocals)
            for (std::size_t k = 0; k < n; ++k) inverse[i * n + k] = Real(1) / f[k];
    }

    // The terms of the loss that contain f_i once residual r has moved by step * column
    // (column null: by step alone).
    double terms(std::size_t i, std::size_t r, const Real* column, Real step) const {
        const Real* f = value.data() + i * n;
        const Real* res = residual.data() + r * n;
        double total = 0;
        Real u[kBlock], inverse_u[kBlock];
        for (std::size_t g = 0; g < n_groups; ++g) {
            for (std::size_t begin = group_start[g]; begin < group_start[g + 1]; begin += kBlock) {
                const std::size_t size = std::min(kBlock, group_start[g + 1] - begin);
                for (std::size_t k = 0; k < size; ++k) {
                    const Real e = column ? step * column[begin + k] : step;
                    u[k] = f[begin + k] + e * (e + 2 * res[begin + k]);
                    if (kReciprocals) inverse_u[k] = Real(1) / u[k];
                }
                const Real own_weight = group_weight[i * n_groups + g];
                for (std::size_t j = 0; j < m; ++j) {
                    if (j == i) continue;
                    const Real* inverse_other = inverse.data() + j * n + begin;
                    const Real* other = value.data() + j * n + begin;
                    const Real other_weight = group_weight[j * n_groups + g];
                    Real own_sum = 0, other_sum = 0;
                    if (own_weight != 0)
                        for (std::size_t k = 0; k < size; ++k)
                            own_sum += std::max(
                                alpha, kReciprocals ? u[k] * inverse_other[k] : u[k] / other[k]);
                    if (other_weight != 0)
                        for (std::size_t k = 0; k < size; ++k)
                            other_sum += std::max(
                                alpha, kReciprocals ? other[k] * inverse_u[k] : other[k] / u[k]);
                    total += own_weight * own_sum + other_weight * other_sum;
                }
            }
        }
        return total;
    }

    void accept(std::size_t i, std::size_t r, const Real* column, Real step) {
        Real* f = value.data() + i * n;
        Real* res = residual.data() + r * n;
        for (std::size_t k = 0; k < n; ++k) {
            const Real e = column ? step * column[k] : step;
            f[k] += e * (e + 2 * res[k]);
            res[k] += e;
        }
    }

    void sweep() {
        for (std::size_t i = 0; i < m; ++i) {
            evaluate(i);
            double current = terms(i, 0, nullptr, Real(0));
            for (std::size_t r = 0; r < q; ++r) {
                for (std::size_t c = 0; c <= p; ++c) {
                    const Real* column = c < p ? x + c * n : nullptr;
                    for (const Real sign : {Real(1), Real(-1)}) {
                        // b is subtracted: a step up in b is a step down in the residual.
                        const Real step = c < p ? sign * step_a : -sign * step_b;
                        const double changed = terms(i, r, column, step);
                        if (changed - current < -tolerance) {
                            accept(i, r, column, step);
                            current = changed;
                            (c < p ? a[(i * q + r) * p + c] : b[i * q + r]) +=
                                sign * (c < p ? step_a : step_b);
                            break;
                        }
                    }
                }
            }
            evaluate(i);
        }
    }
};

template <class Real, bool kReciprocals>
void run(std::size_t n, std::size_t p, std::size_t q, std::size_t m, std::size_t n_groups,
         const Real* x, const std::size_t* group_start, const Real* group_weight, double alpha,
         double step_a, double step_b, double tolerance, std::size_t n_sweeps, Real* a, Real* b) {
    Naive<Real, kReciprocals> naive{n,
                                    p,
                                    q,
                                    m,
                                    n_groups,
                                    x,
                                    group_start,
                                    group_weight,
                                    Real(alpha),
                                    Real(step_a),
                                    Real(step_b),
                                    tolerance,
                                    a,
                                    b,
                                    std::vector<Real>(m * n),
                                    std::vector<Real>(kReciprocals ? m * n : 0),
                                    std::vector<Real>(q * n)};
    for (std::size_t i = 0; i < m; ++i) naive.evaluate(i);
    for (std::size_t sweep = 0; sweep < n_sweeps; ++sweep) naive.sweep();
}

template <class Real>
void choose(bool reciprocals, std::size_t n, std::size_t p, std::size_t q, std::size_t m,
            std::size_t n_groups, const Real* x, const std::size_t* group_start,
            const Real* group_weight, double alpha, double step_a, double step_b, double tolerance,
            std::size_t n_sweeps, Real* a, Real* b) {
    (reciprocals ? run<Real, true> : run<Real, false>)(n, p, q, m, n_groups, x, group_start,
                                                       group_weight, alpha, step_a, step_b,
                                                       tolerance, n_sweeps, a, b);
}

}  // namespace

extern "C" void naive_cpm_float64(bool reciprocals, std::size_t n, std::size_t p, std::size_t q,
                                  std::size_t m, std::size_t n_groups, const double* x,
                                  const std::size_t* group_start, const double* group_weight,
                                  double alpha, double step_a, double step_b, double tolerance,
                                  std::size_t n_sweeps, double* a, double* b) {
    choose(reciprocals, n, p, q, m, n_groups, x, group_start, group_weight, alpha, step_a, step_b,
           tolerance, n_sweeps, a, b);
}

extern "C" void naive_cpm_float32(bool reciprocals, std::size_t n, std::size_t p, std::size_t q,
                                  std::size_t m, std::size_t n_groups, const float* x,
                                  const std::size_t* group_start, const float* group_weight,
                                  double alpha, double step_a, double step_b, double tolerance,
                                  std::size_t n_sweeps, float* a, float* b) {
    choose(reciprocals, n, p, q, m, n_groups, x, group_start, group_weight, alpha, step_a, step_b,
           tolerance, n_sweeps, a, b);
}
