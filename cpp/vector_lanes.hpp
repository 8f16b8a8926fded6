// Vectors of hardware, by the extensions of GCC and Clang; see lanes.hpp.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace qms22::QMS22_ISA {

#if defined(__AVX512F__)
constexpr std::size_t kVectorBytes = 64;
#elif defined(__AVX__)
constexpr std::size_t kVectorBytes = 32;
#else
constexpr std::size_t kVectorBytes = 16;
#endif

template <class Real>
struct VectorOf;

template <>
struct VectorOf<double> {
    using type __attribute__((vector_size(kVectorBytes))) = double;
    using mask __attribute__((vector_size(kVectorBytes))) = std::int64_t;
};

template <>
struct VectorOf<float> {
    using type __attribute__((vector_size(kVectorBytes))) = float;
    using mask __attribute__((vector_size(kVectorBytes))) = std::int32_t;
};

template <class Real>
using Vector = typename VectorOf<Real>::type;
template <class Real>
using Mask = typename VectorOf<Real>::mask;

// Rows in one hardware vector.
template <class Real>
constexpr std::size_t kWidth = kVectorBytes / sizeof(Real);

template <class Real>
inline Vector<Real> load(const Real* at) {
    return *reinterpret_cast<const Vector<Real>*>(at);
}

template <class Real>
inline void store(Real* at, Vector<Real> value) {
    *reinterpret_cast<Vector<Real>*>(at) = value;
}

template <class Real>
inline Vector<Real> fill(Real value) {
    return value - Vector<Real>{};  // exact for -0.0 too
}

template <class V, class M>
inline V choose(M condition, V a, V b) {
    return condition ? a : b;
}

template <class V>
inline auto lane(const V& vector, std::size_t i) {
    return vector[i];
}

#if defined(__AVX512F__)
inline bool any_greater(Vector<double> a, Vector<double> b) {
    return _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ) != 0;
}
inline bool any_greater(Vector<float> a, Vector<float> b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) != 0;
}
inline Vector<double> square_root(Vector<double> a) { return _mm512_sqrt_pd(a); }
inline Vector<float> square_root(Vector<float> a) { return _mm512_sqrt_ps(a); }
#elif defined(__AVX__)
inline bool any_greater(Vector<double> a, Vector<double> b) {
    return _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_GT_OQ)) != 0;
}
inline bool any_greater(Vector<float> a, Vector<float> b) {
    return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)) != 0;
}
inline Vector<double> square_root(Vector<double> a) { return _mm256_sqrt_pd(a); }
inline Vector<float> square_root(Vector<float> a) { return _mm256_sqrt_ps(a); }
#elif defined(__SSE2__)
inline bool any_greater(Vector<double> a, Vector<double> b) {
    return _mm_movemask_pd(_mm_cmpgt_pd(a, b)) != 0;
}
inline bool any_greater(Vector<float> a, Vector<float> b) {
    return _mm_movemask_ps(_mm_cmpgt_ps(a, b)) != 0;
}
inline Vector<double> square_root(Vector<double> a) { return _mm_sqrt_pd(a); }
inline Vector<float> square_root(Vector<float> a) { return _mm_sqrt_ps(a); }
#else
template <class V>
inline bool any_greater(V a, V b) {
    const auto greater = a > b;
    bool any = false;
    for (std::size_t i = 0; i < sizeof(V) / sizeof(a[0]); ++i) any |= greater[i] != 0;
    return any;
}
template <class V>
inline V square_root(V a) {
    for (std::size_t i = 0; i < sizeof(V) / sizeof(a[0]); ++i) a[i] = std::sqrt(a[i]);
    return a;
}
#endif

// table[index] for every lane.
template <class Real, class Index>
inline Vector<Real> gather(const Real* table, const Index* index) {
    Vector<Real> result;
    for (std::size_t i = 0; i < kWidth<Real>; ++i) result[i] = table[index[i]];
    return result;
}

// The same; the table must be as long as a vector.
inline Vector<double> look_up(const double* table, const std::int64_t* index) {
#if defined(__AVX512F__)
    return _mm512_permutexvar_pd(_mm512_load_si512(index), _mm512_loadu_pd(table));
#else
    return gather(table, index);
#endif
}

// Which of the lanes' numbers is this one.
inline Mask<double> equal(const std::int64_t* numbers, std::size_t number) {
    return *reinterpret_cast<const Mask<double>*>(numbers) == std::int64_t(number);
}

// |a|, by clearing the sign bit, which does not occupy the floating-point adders.
template <class Real>
inline Vector<Real> magnitude(Vector<Real> a) {
    const Mask<Real> sign = (Mask<Real>)(fill(Real(-0.0)));
    return (Vector<Real>)((Mask<Real>)a & ~sign);
}

// Two numbers to which others are added at once.
using Pair __attribute__((vector_size(2 * sizeof(double)))) = double;

}  // namespace qms22::QMS22_ISA
