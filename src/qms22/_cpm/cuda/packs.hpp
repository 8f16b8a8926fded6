// Packs of neighbouring rows, which a thread loads and stores at once.
#pragma once

namespace qms22 {

// Neighbouring rows that a thread loads at once: 16 bytes where there are many rows, less where
// more threads can share them.
template <class Real, int kRows>
struct Pack {
    Real of[kRows];
};

template <int kBytes>
struct WordOf;
template <>
struct WordOf<4> {
    using type = unsigned;
};
template <>
struct WordOf<8> {
    using type = uint2;
};
template <>
struct WordOf<16> {
    using type = uint4;
};

// A pack as one machine word, for loads and stores.
template <class Real, int kRows>
union Packed {
    using Word = typename WordOf<kRows * sizeof(Real)>::type;
    Word word;
    Pack<Real, kRows> pack;
};

// Tells the compiler that a pointer is to device memory, so that it need not check each access.
template <class T>
__device__ __forceinline__ T* in_device_memory(T* memory) {
    __builtin_assume(__isGlobal(memory));
    return memory;
}

template <int kRows, class Real>
__device__ __forceinline__ Pack<Real, kRows> load(const Real* from) {
    using Word = typename Packed<Real, kRows>::Word;
    return Packed<Real, kRows>{*reinterpret_cast<const Word*>(from)}.pack;
}

// The same for memory that no kernel writes to.
template <int kRows, class Real>
__device__ __forceinline__ Pack<Real, kRows> load_constant(const Real* from) {
    using Word = typename Packed<Real, kRows>::Word;
    return Packed<Real, kRows>{__ldg(reinterpret_cast<const Word*>(from))}.pack;
}

// Stores to device memory as one word, which the compiler would not do by itself, or to shared
// memory.
template <bool kShared = false, int kRows, class Real>
__device__ __forceinline__ void store(Real* to, const Pack<Real, kRows>& pack) {
    using Word = typename Packed<Real, kRows>::Word;
    Packed<Real, kRows> packed;
    packed.pack = pack;
    if constexpr (kShared)
        *reinterpret_cast<Word*>(to) = packed.word;
    else
        __stwb(reinterpret_cast<Word*>(to), packed.word);
}

}  // namespace qms22
