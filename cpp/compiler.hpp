// What compilers and systems spell in different ways.
#pragma once

#if defined(__GNUC__) || defined(__clang__)
#define QMS22_HAS_VECTORS 1
#define QMS22_NOINLINE __attribute__((noinline))
#define QMS22_UNLIKELY(condition) __builtin_expect(condition, 0)
#else
#define QMS22_HAS_VECTORS 0
#define QMS22_NOINLINE __declspec(noinline)
#define QMS22_UNLIKELY(condition) (condition)
#endif

#if defined(QMS22_X86) && defined(_WIN32)

#if !defined(NOMINMAX)
#define NOMINMAX
#endif
#include <intrin.h>
#include <windows.h>

namespace qms22 {

inline bool cpu_has_avx2() {
    return IsProcessorFeaturePresent(PF_AVX2_INSTRUCTIONS_AVAILABLE) != 0;
}
inline bool cpu_has_avx512() {
    constexpr unsigned kNeeded = 1U << 16U | 1U << 17U | 1U << 30U | 1U << 31U;  // F, DQ, BW, VL
    int registers[4];
    __cpuidex(registers, 7, 0);
    return IsProcessorFeaturePresent(PF_AVX512F_INSTRUCTIONS_AVAILABLE) != 0 &&
           (unsigned(registers[1]) & kNeeded) == kNeeded;
}

}  // namespace qms22

#elif defined(QMS22_X86)

namespace qms22 {

inline bool cpu_has_avx2() { return __builtin_cpu_supports("avx2") != 0; }
inline bool cpu_has_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

}  // namespace qms22

#endif
