// Registers, loads and stores of one instruction set, for the files that are compiled once for each of them.
//
// Everything lives in a namespace named after the instruction set: the linker must never take a function compiled for
// one to serve another. For the same reason those files call nothing inline from the standard library.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/dtype.h"

#if defined(__AVX512F__)
#define NPU_SIMD avx512
#elif defined(__AVX2__)
#define NPU_SIMD avx2
#else
#define NPU_SIMD generic
#endif

namespace npu::kernels::NPU_SIMD {

#if defined(__AVX512F__)
inline constexpr int kRegisterBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kRegisterBytes = 32;
#else
inline constexpr int kRegisterBytes = 16;
#endif

template <class T, int kBytes = kRegisterBytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(kBytes)));
};
template <class T, int kBytes = kRegisterBytes>
using Vector = typename VectorOf<T, kBytes>::type;

template <class V>
V load_unaligned(const void* from) {
  V value;
  __builtin_memcpy(&value, from, sizeof(V));
  return value;
}
template <class V>
void store_unaligned(void* to, V value) {
  __builtin_memcpy(to, &value, sizeof(V));
}

// Past the cache; `to` is aligned to the vector.
template <class V>
void store_streaming(void* to, V value) {
#if defined(__AVX512F__)
  if constexpr (sizeof(V) == 64) return _mm512_stream_si512(static_cast<__m512i*>(to), (__m512i)value);
#endif
#if defined(__AVX2__)
  if constexpr (sizeof(V) == 32) return _mm256_stream_si256(static_cast<__m256i*>(to), (__m256i)value);
#endif
#if defined(__x86_64__)
  if constexpr (sizeof(V) == 16) return _mm_stream_si128(static_cast<__m128i*>(to), (__m128i)value);
#endif
  store_unaligned(to, value);
}

// Orders streaming stores before what follows, as ordinary stores are.
inline void streaming_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// x * y + z, rounded once where the instruction set can; PyTorch's CPU kernels do the same.
template <class V>
V multiply_add(V x, V y, V z) {
  return x * y + z;
}
#if defined(__AVX512F__)
inline Vector<float> multiply_add(Vector<float> x, Vector<float> y, Vector<float> z) {
  return _mm512_fmadd_ps(x, y, z);
}
inline Vector<double> multiply_add(Vector<double> x, Vector<double> y, Vector<double> z) {
  return _mm512_fmadd_pd(x, y, z);
}
#elif defined(__AVX2__)
inline Vector<float> multiply_add(Vector<float> x, Vector<float> y, Vector<float> z) {
  return _mm256_fmadd_ps(x, y, z);
}
inline Vector<double> multiply_add(Vector<double> x, Vector<double> y, Vector<double> z) {
  return _mm256_fmadd_pd(x, y, z);
}
#endif

template <class T>
Vector<T> broadcast(T value) {
  return value - Vector<T>{};  // x - 0 is x, signed zeros included
}

using Halves = Vector<uint16_t, kRegisterBytes / 2>;  // as many 16-bit floats as a register holds floats

inline Vector<float> widen(Halves halves, BFloat16) {
  return (Vector<float>)(__builtin_convertvector(halves, Vector<uint32_t>) << 16);
}
inline Halves narrow(Vector<float> value, BFloat16) {  // to nearest, ties to even
  const auto bits = (Vector<uint32_t>)value;
  const Vector<uint32_t> rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const auto is_nan = (Vector<uint32_t>)(value != value);
  return __builtin_convertvector((rounded & ~is_nan) | (0x7fc0 & is_nan), Halves);
}

#if defined(__AVX512F__)
inline Vector<float> widen(Halves halves, Float16) { return _mm512_cvtph_ps((__m256i)halves); }
inline Halves narrow(Vector<float> value, Float16) {
  return (Halves)_mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#elif defined(__AVX2__)
inline Vector<float> widen(Halves halves, Float16) { return _mm256_cvtph_ps((__m128i)halves); }
inline Halves narrow(Vector<float> value, Float16) {
  return (Halves)_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#else
// A half's exponent and fraction, shifted to a float's place, are the value divided by 2^112; infinities need more.
inline Vector<float> widen(Halves halves, Float16) {
  const auto wide = __builtin_convertvector(halves, Vector<uint32_t>);
  const Vector<uint32_t> magnitude = wide & 0x7fff;
  const auto scaled = (Vector<uint32_t>)((Vector<float>)(magnitude << 13) * 0x1p112f);
  const auto special = (Vector<uint32_t>)(magnitude >= 0x7c00);
  return (Vector<float>)(scaled | (special & 0x7f800000) | ((wide & 0x8000) << 16));
}
// Adding and subtracting a number whose last place is a half's smallest lets the hardware round subnormal halves.
inline Halves narrow(Vector<float> value, Float16) {
  const auto bits = (Vector<uint32_t>)value;
  const Vector<uint32_t> sign = bits & 0x80000000u;
  const Vector<uint32_t> magnitude = bits ^ sign;
  const auto small = (Vector<uint32_t>)((Vector<float>)magnitude + 0.5f) - 0x3f000000u;
  const Vector<uint32_t> normal = (magnitude + 0xfff + ((magnitude >> 13) & 1) - 0x38000000u) >> 13;
  const auto is_small = (Vector<uint32_t>)(magnitude < 0x38800000u);   // below 2^-14
  const auto is_large = (Vector<uint32_t>)(magnitude >= 0x47800000u);  // 2^16 and above: infinity
  const auto is_nan = (Vector<uint32_t>)(magnitude > 0x7f800000u);
  const Vector<uint32_t> finite = (small & is_small) | (normal & ~is_small);
  const Vector<uint32_t> special = 0x7c00 | (0x200 & is_nan);
  return __builtin_convertvector((finite & ~is_large) | (special & is_large) | (sign >> 16), Halves);
}
#endif

// How elements of type T sit in a register: as themselves, or as floats when T is a 16-bit float.
template <class T>
struct Lane {
  using Compute = T;
  using Register = Vector<T>;
  static constexpr int kCount = kRegisterBytes / sizeof(T);
  static Register load(const T* from) { return load_unaligned<Register>(from); }
  static void store(T* to, Register value) { store_unaligned(to, value); }
  static void stream(T* to, Register value) { store_streaming(to, value); }
};

template <class T>
struct HalfLane {
  using Compute = float;
  using Register = Vector<float>;
  static constexpr int kCount = kRegisterBytes / sizeof(float);
  static Register load(const T* from) { return widen(load_unaligned<Halves>(from), T{}); }
  static void store(T* to, Register value) { store_unaligned(to, narrow(value, T{})); }
  static void stream(T* to, Register value) { store_streaming(to, narrow(value, T{})); }
};
template <>
struct Lane<BFloat16> : HalfLane<BFloat16> {};
template <>
struct Lane<Float16> : HalfLane<Float16> {};

}  // namespace npu::kernels::NPU_SIMD
