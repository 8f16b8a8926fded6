// Vectors of one row, for compilers without vectors; see lanes.hpp.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace qms22::QMS22_ISA {

template <class Real>
using Vector = Real;

// Rows in one vector.
template <class Real>
constexpr std::size_t kWidth = 1;

template <class Value>
inline Value lane(Value vector, std::size_t) {
    return vector;
}

template <class Real>
inline Real load(const Real* at) {
    return *at;
}

template <class Real>
inline void store(Real* at, Real value) {
    *at = value;
}

template <class Real>
inline Real fill(Real value) {
    return value;
}

template <class Real>
inline Real choose(bool condition, Real a, Real b) {
    return condition ? a : b;
}

template <class Real>
inline bool any_greater(Real a, Real b) {
    return a > b;
}

template <class Real>
inline Real square_root(Real a) {
    return std::sqrt(a);
}

template <class Real>
inline Real magnitude(Real a) {
    return std::fabs(a);
}

// table[index] for every lane.
template <class Real, class Index>
inline Real gather(const Real* table, const Index* index) {
    return table[*index];
}

// The same; the table must be as long as a vector.
inline double look_up(const double* table, const std::int64_t* index) { return table[*index]; }

// Which of the lanes' numbers is this one.
inline bool equal(const std::int64_t* numbers, std::size_t number) {
    return *numbers == std::int64_t(number);
}

// Two numbers to which others are added at once.
struct Pair {
    double first, second;

    double operator[](std::size_t i) const { return i == 0 ? first : second; }
    Pair& operator+=(const Pair& other) {
        first += other.first;
        second += other.second;
        return *this;
    }
};

}  // namespace qms22::QMS22_ISA
