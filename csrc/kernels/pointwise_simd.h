// Body of pointwise_generic.cpp, pointwise_avx2.cpp and pointwise_avx512.cpp.
#pragma once

#include "kernels/pointwise_loops.h"
#include "kernels/simd.h"

namespace npu::kernels::NPU_SIMD {

template <class R>
using MaskOf = decltype(R{} < R{});

// Functors over registers. T names the lane; integers are unsigned, so that they wrap.
template <class T>
struct Op {
  using Compute = typename Lane<T>::Compute;
  using R = typename Lane<T>::Register;
  static constexpr bool kFloating = Compute(0.5f) != Compute(0);

  static Compute number(const Span& span) {
    if constexpr (kFloating)
      return static_cast<Compute>(span.number.real);
    else
      return static_cast<Compute>(span.number.integer);
  }
  // The number as an element of the tensor: 16-bit floats round it.
  static R rounded_number(const Span& span) {
    R value = broadcast(number(span));
    if constexpr (sizeof(Compute) != sizeof(T)) value = widen(narrow(value, T{}), T{});
    return value;
  }
};

template <class T>
struct Add : Op<T> {
  using R = typename Op<T>::R;
  explicit Add(const Span&) {}
  R operator()(R a, R b) const { return a + b; }
};
template <class T>
struct Sub : Op<T> {
  using R = typename Op<T>::R;
  explicit Sub(const Span&) {}
  R operator()(R a, R b) const { return a - b; }
};
template <class T>
struct AddScaled : Op<T> {
  using R = typename Op<T>::R;
  R alpha;
  explicit AddScaled(const Span& span) : alpha(broadcast(Op<T>::number(span))) {}
  R operator()(R a, R b) const { return multiply_add(b, alpha, a); }
};
template <class T>
struct Mul : Op<T> {
  using R = typename Op<T>::R;
  explicit Mul(const Span&) {}
  R operator()(R a, R b) const { return a * b; }
};
template <class T>
struct Div : Op<T> {
  using R = typename Op<T>::R;
  explicit Div(const Span&) {}
  R operator()(R a, R b) const { return a / b; }
};
template <class T>
struct AddNumber : Op<T> {
  using R = typename Op<T>::R;
  R other;
  explicit AddNumber(const Span& span) : other(Op<T>::rounded_number(span)) {}
  R operator()(R a) const { return a + other; }
};
template <class T>
struct MulNumber : Op<T> {
  using R = typename Op<T>::R;
  R other;
  explicit MulNumber(const Span& span) : other(broadcast(Op<T>::number(span))) {}
  R operator()(R a) const { return a * other; }
};
template <class T>
struct DivNumber : Op<T> {
  using R = typename Op<T>::R;
  R other;
  explicit DivNumber(const Span& span) : other(broadcast(Op<T>::number(span))) {}
  R operator()(R a) const { return a / other; }
};
// NaN and -0 pass, as in PyTorch. T is signed here.
template <class T>
struct Relu : Op<T> {
  using R = typename Op<T>::R;
  explicit Relu(const Span&) {}
  R operator()(R a) const { return (R)((MaskOf<R>)a & ~(a < R{})); }
};
template <class T>
struct Neg : Op<T> {
  using R = typename Op<T>::R;
  explicit Neg(const Span&) {}
  R operator()(R a) const { return -a; }
};

template <class F>
inline constexpr bool kTakesOther = requires(F f, typename F::R r) { f(r, r); };

// Applies f to whole registers; a stretch that fills none goes through a padded copy.
template <class T, class F>
struct Sweep {
  using L = Lane<T>;
  const F& f;
  T* out;
  const T* self;
  const T* other;

  typename L::Register compute(const T* a, const T* b) const {
    if constexpr (kTakesOther<F>)
      return f(L::load(a), L::load(b));
    else
      return f(L::load(a));
  }
  void partial(int64_t begin, int64_t count) const {
    T a[L::kCount] = {}, b[L::kCount] = {}, result[L::kCount];
    __builtin_memcpy(a, self + begin, count * sizeof(T));
    if constexpr (kTakesOther<F>) __builtin_memcpy(b, other + begin, count * sizeof(T));
    L::store(result, compute(a, b));
    __builtin_memcpy(out + begin, result, count * sizeof(T));
  }
  void all(int64_t count) const {
    int64_t i = 0;
    for (; i + L::kCount <= count; i += L::kCount) L::store(out + i, compute(self + i, other + i));
    if (i < count) partial(i, count - i);
  }
  void all_streaming(int64_t count) const {
    constexpr uintptr_t kStoreBytes = L::kCount * sizeof(T);
    int64_t i = static_cast<int64_t>((-reinterpret_cast<uintptr_t>(out) % kStoreBytes) / sizeof(T));
    if (i > 0) partial(0, i);
    for (; i + L::kCount <= count; i += L::kCount) L::stream(out + i, compute(self + i, other + i));
    if (i < count) partial(i, count - i);
    streaming_fence();
  }
};

template <class T, class F>
void apply(const Span& span) {
  const F f(span);
  // An operation without `other` never reads it; `self` keeps the pointer arithmetic defined.
  const void* other = span.other ? span.other : span.self;
  const Sweep<T, F> sweep{f, static_cast<T*>(span.out), static_cast<const T*>(span.self), static_cast<const T*>(other)};
  if (span.streaming && span.count >= Lane<T>::kCount) return sweep.all_streaming(span.count);
  sweep.all(span.count);
}

// A cast goes through the types that its ends are computed in, a block at a time. Blocks have a constant length and
// distinct ends, so the compiler vectorises them.
inline constexpr int kCastBlock = 64;

template <class T>
struct CastEnd {  // T is its own compute type
  using Compute = T;
  static const T* read(const T* from, T*) { return from; }
  static T* target(T* to, T*) { return to; }
  static void write(T*, const T*) {}
};
template <class T>
struct HalfCastEnd {
  using Compute = float;
  static const float* read(const T* from, float* buffer) {
    for (int i = 0; i < kCastBlock; i += Lane<T>::kCount) Lane<float>::store(buffer + i, Lane<T>::load(from + i));
    return buffer;
  }
  static float* target(T*, float* buffer) { return buffer; }
  static void write(T* to, const float* buffer) {
    for (int i = 0; i < kCastBlock; i += Lane<T>::kCount) Lane<T>::store(to + i, Lane<float>::load(buffer + i));
  }
};
template <>
struct CastEnd<BFloat16> : HalfCastEnd<BFloat16> {};
template <>
struct CastEnd<Float16> : HalfCastEnd<Float16> {};

template <class From, class To>
void convert(To* __restrict to, const From* __restrict from) {
  for (int i = 0; i < kCastBlock; ++i) to[i] = static_cast<To>(from[i]);
}

template <class From, class To>
void cast_block(To* to, const From* from) {
  typename CastEnd<From>::Compute source_buffer[kCastBlock];
  typename CastEnd<To>::Compute target_buffer[kCastBlock];
  convert(CastEnd<To>::target(to, target_buffer), CastEnd<From>::read(from, source_buffer));
  CastEnd<To>::write(to, target_buffer);
}

template <class From, class To>
void cast(void* out, const void* self, int64_t count) {
  auto* to = static_cast<To*>(out);
  auto* from = static_cast<const From*>(self);
  int64_t i = 0;
  for (; i + kCastBlock <= count; i += kCastBlock) cast_block(to + i, from + i);
  if (i == count) return;
  From padded_from[kCastBlock] = {};
  To padded_to[kCastBlock];
  __builtin_memcpy(padded_from, from + i, (count - i) * sizeof(From));
  cast_block(padded_to, padded_from);
  __builtin_memcpy(to + i, padded_to, (count - i) * sizeof(To));
}

inline void fill(void* out, const void* pattern16, int64_t bytes, bool streaming) {
  using R = Vector<uint8_t>;
  uint8_t repeated[kRegisterBytes + 16];
  for (int i = 0; i < kRegisterBytes + 16; i += 16) __builtin_memcpy(repeated + i, pattern16, 16);
  auto* to = static_cast<uint8_t*>(out);
  if (bytes < kRegisterBytes) {
    __builtin_memcpy(to, repeated, bytes);
    return;
  }
  store_unaligned(to, load_unaligned<R>(repeated));
  // From an aligned address on, the pattern starts `first` bytes in; elements divide 16 and `out` is aligned to them.
  const int64_t first = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) % kRegisterBytes);
  const R value = load_unaligned<R>(repeated + first % 16);
  int64_t i = first;
  if (streaming) {
    for (; i + kRegisterBytes <= bytes; i += kRegisterBytes) store_streaming(to + i, value);
    streaming_fence();
  } else {
    for (; i + kRegisterBytes <= bytes; i += kRegisterBytes) store_unaligned(to + i, value);
  }
  __builtin_memcpy(to + i, repeated + i % 16, bytes - i);
}

inline void copy_streaming(void* out, const void* from, int64_t bytes) {
  using R = Vector<uint8_t>;
  auto* to = static_cast<uint8_t*>(out);
  auto* source = static_cast<const uint8_t*>(from);
  int64_t i = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) % kRegisterBytes);
  if (i > bytes) i = bytes;
  __builtin_memcpy(to, source, i);
  for (; i + 4 * kRegisterBytes <= bytes; i += 4 * kRegisterBytes) {
    const R a = load_unaligned<R>(source + i);
    const R b = load_unaligned<R>(source + i + kRegisterBytes);
    const R c = load_unaligned<R>(source + i + 2 * kRegisterBytes);
    const R d = load_unaligned<R>(source + i + 3 * kRegisterBytes);
    store_streaming(to + i, a);
    store_streaming(to + i + kRegisterBytes, b);
    store_streaming(to + i + 2 * kRegisterBytes, c);
    store_streaming(to + i + 3 * kRegisterBytes, d);
  }
  __builtin_memcpy(to + i, source + i, bytes - i);
  streaming_fence();
}

// Rows of the tables, in the order of DType.
template <template <class> class F>
struct Row {
  template <class T>
  static constexpr Loop of = apply<T, F<T>>;
};
#define NPU_FLOATING_ROW(F) {Row<F>::of<float>, Row<F>::of<double>, Row<F>::of<BFloat16>, Row<F>::of<Float16>}
#define NPU_ARITHMETIC_ROW(F, Signed)                                                     \
  {Row<F>::of<float>,           Row<F>::of<double>,          Row<F>::of<BFloat16>,        \
   Row<F>::of<Float16>,         Row<F>::of<Signed##int64_t>, Row<F>::of<Signed##int32_t>, \
   Row<F>::of<Signed##int16_t>, Row<F>::of<Signed##int8_t>,  Row<F>::of<uint8_t>}
#define NPU_SCALED_ROW(F) /* PyTorch's vector and scalar loops round 16-bit floats differently */ \
  {Row<F>::of<float>,                                                                             \
   Row<F>::of<double>,                                                                            \
   nullptr,                                                                                       \
   nullptr,                                                                                       \
   Row<F>::of<uint64_t>,                                                                          \
   Row<F>::of<uint32_t>,                                                                          \
   Row<F>::of<uint16_t>,                                                                          \
   Row<F>::of<uint8_t>,                                                                           \
   Row<F>::of<uint8_t>}
#define NPU_CAST_ROW(From)                                                                                   \
  {cast<From, float>,   cast<From, double>,  cast<From, BFloat16>, cast<From, Float16>, cast<From, int64_t>, \
   cast<From, int32_t>, cast<From, int16_t>, cast<From, int8_t>,   cast<From, uint8_t>, cast<From, bool>}
#define NPU_FLOATING_CAST_ROW(From) /* a float out of a small integer's range has no defined result */ \
  {cast<From, float>,                                                                                  \
   cast<From, double>,                                                                                 \
   cast<From, BFloat16>,                                                                               \
   cast<From, Float16>,                                                                                \
   cast<From, int64_t>,                                                                                \
   cast<From, int32_t>,                                                                                \
   nullptr,                                                                                            \
   nullptr,                                                                                            \
   nullptr,                                                                                            \
   cast<From, bool>}

inline constexpr PointwiseLoops kLoops = {
    .pointwise = {NPU_ARITHMETIC_ROW(Add, u), NPU_ARITHMETIC_ROW(Sub, u), NPU_SCALED_ROW(AddScaled),
                  NPU_ARITHMETIC_ROW(Mul, u), NPU_FLOATING_ROW(Div), NPU_ARITHMETIC_ROW(AddNumber, u),
                  NPU_ARITHMETIC_ROW(MulNumber, u), NPU_FLOATING_ROW(DivNumber), NPU_ARITHMETIC_ROW(Relu, ),
                  NPU_ARITHMETIC_ROW(Neg, u)},
    .cast = {NPU_FLOATING_CAST_ROW(float), NPU_FLOATING_CAST_ROW(double), NPU_FLOATING_CAST_ROW(BFloat16),
             NPU_FLOATING_CAST_ROW(Float16), NPU_CAST_ROW(int64_t), NPU_CAST_ROW(int32_t), NPU_CAST_ROW(int16_t),
             NPU_CAST_ROW(int8_t), NPU_CAST_ROW(uint8_t), NPU_CAST_ROW(bool)},
    .fill = fill,
    .copy_streaming = copy_streaming,
};
#undef NPU_FLOATING_ROW
#undef NPU_ARITHMETIC_ROW
#undef NPU_SCALED_ROW
#undef NPU_CAST_ROW
#undef NPU_FLOATING_CAST_ROW

}  // namespace npu::kernels::NPU_SIMD
