// Vectors of the instruction set that this translation unit is compiled for.
//
// Included only by kernel.cpp and nearest_kernel.cpp, which are compiled once per instruction set
// inside a namespace of that set's name; nothing here may be shared between two of them. Both
// versions of the vectors have the same functions and compute the same bits.
#pragma once

#include <cfloat>
#include <cstddef>
#include <limits>

#include "compiler.hpp"

#if defined(QMS22_SCALAR) || !QMS22_HAS_VECTORS
#include "scalar_lanes.hpp"
#else
#include "vector_lanes.hpp"
#endif

namespace qms22::QMS22_ISA {

static_assert(FLT_EVAL_METHOD == 0, "numbers in registers must be rounded as those in memory are");

template <class Real>
constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

template <class V>
inline V larger(V a, V b) {
    return choose(a > b, a, b);
}

template <class V>
inline V smaller(V a, V b) {
    return choose(a < b, a, b);
}

}  // namespace qms22::QMS22_ISA
