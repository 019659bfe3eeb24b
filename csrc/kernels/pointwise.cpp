#include "kernels/pointwise.h"

#include <cstring>

#include "kernels/cpu.h"
#include "kernels/simd.h"
#include "kernels/tile.h"

namespace npu::kernels {
namespace {

using Access = Operand::Access;

const PointwiseLoops& select_loops() {
#if defined(__x86_64__)
  if (isa() == Isa::kAvx512) return kAvx512Loops;
  if (isa() == Isa::kAvx2) return kAvx2Loops;
#endif
  return kGenericLoops;
}

template <class T>
T* advance(T* address, int64_t elements, size_t element_bytes) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return address ? static_cast<Byte*>(address) + elements * static_cast<int64_t>(element_bytes) : nullptr;
}

void run_pointwise(const TaskContext& context, const void* arguments) {
  const auto& a = *static_cast<const PointwiseArguments*>(arguments);
  const Loop loop = loops().pointwise[static_cast<int>(a.op)][static_cast<int>(a.dtype)];
  const size_t bytes = size_of(a.dtype);
  const Span all{context.translate(a.out),
                 context.translate(a.self),
                 context.translate(a.other),
                 a.count,
                 a.number,
                 a.count * bytes * (a.other ? 3 : 2) > streaming_bytes()};
  for_each_tile(context, a.count, bytes, [&](int64_t begin, int64_t count) {
    loop({advance(all.out, begin, bytes), advance(all.self, begin, bytes), advance(all.other, begin, bytes), count,
          all.number, all.streaming});
  });
}

void visit_pointwise(void* arguments, OperandVisitor& visitor) {
  auto& a = *static_cast<PointwiseArguments*>(arguments);
  visit_operand(visitor, "self", Access::kRead, a.self, a.dtype, a.shape, a.count);
  if (a.other) visit_operand(visitor, "other", Access::kRead, a.other, a.dtype, a.shape, a.count);
  visit_operand(visitor, "out", Access::kWrite, a.out, a.dtype, a.shape, a.count);
}

void run_cast(const TaskContext& context, const void* arguments) {
  const auto& a = *static_cast<const CastArguments*>(arguments);
  const CastLoop loop = loops().cast[static_cast<int>(a.self_dtype)][static_cast<int>(a.out_dtype)];
  const size_t out_bytes = size_of(a.out_dtype), self_bytes = size_of(a.self_dtype);
  void* out = context.translate(a.out);
  const void* self = context.translate(a.self);
  for_each_tile(context, a.count, out_bytes > self_bytes ? out_bytes : self_bytes, [&](int64_t begin, int64_t count) {
    loop(advance(out, begin, out_bytes), advance(self, begin, self_bytes), count);
  });
}

void visit_cast(void* arguments, OperandVisitor& visitor) {
  auto& a = *static_cast<CastArguments*>(arguments);
  visit_operand(visitor, "self", Access::kRead, a.self, a.self_dtype, a.shape, a.count);
  visit_operand(visitor, "out", Access::kWrite, a.out, a.out_dtype, a.shape, a.count);
}

void run_fill(const TaskContext& context, const void* arguments) {
  const auto& a = *static_cast<const FillArguments*>(arguments);
  const size_t bytes = size_of(a.dtype);
  void* out = context.translate(a.out);
  const bool streaming = a.count * bytes > streaming_bytes();
  for_each_tile(context, a.count, bytes, [&](int64_t begin, int64_t count) {
    loops().fill(advance(out, begin, bytes), a.pattern, count * static_cast<int64_t>(bytes), streaming);
  });
}

void visit_fill(void* arguments, OperandVisitor& visitor) {
  auto& a = *static_cast<FillArguments*>(arguments);
  visit_operand(visitor, "out", Access::kWrite, a.out, a.dtype, a.shape, a.count);
}

VectorMath g_math;

void run_exp(const TaskContext& context, const void* arguments) {
  const auto& a = *static_cast<const ExpArguments*>(arguments);
  void* out = context.translate(a.out);
  const void* self = context.translate(a.self);
  for_each_tile(context, a.count, size_of(a.dtype), [&](int64_t begin, int64_t count) {
    if (a.dtype == DType::kFloat32)
      g_math.exp_float(static_cast<const float*>(self) + begin, static_cast<float*>(out) + begin, count);
    else
      g_math.exp_double(static_cast<const double*>(self) + begin, static_cast<double*>(out) + begin, count);
  });
}

void visit_exp(void* arguments, OperandVisitor& visitor) {
  auto& a = *static_cast<ExpArguments*>(arguments);
  visit_operand(visitor, "self", Access::kRead, a.self, a.dtype, a.shape, a.count);
  visit_operand(visitor, "out", Access::kWrite, a.out, a.dtype, a.shape, a.count);
}

constexpr TaskInfo pointwise_info(const char* name) {
  return {.name = name, .run = run_pointwise, .engines = kVectorEngine, .visit = visit_pointwise};
}

// The bits of one element.
size_t element_bits(unsigned char* out, DType dtype, Number value) {
  const auto put = [out](auto element) {
    std::memcpy(out, &element, sizeof(element));
    return sizeof(element);
  };
  const auto put_half = [&](auto half) {
    const NPU_SIMD::Halves halves = NPU_SIMD::narrow(NPU_SIMD::broadcast(static_cast<float>(value.real)), half);
    return put(static_cast<uint16_t>(halves[0]));
  };
  switch (dtype) {
    case DType::kFloat32: return put(static_cast<float>(value.real));
    case DType::kFloat64: return put(value.real);
    case DType::kBFloat16: return put_half(BFloat16{});
    case DType::kFloat16: return put_half(Float16{});
    case DType::kBool: return put(value.integer != 0);
    default: std::memcpy(out, &value.integer, 8); return size_of(dtype);  // the low bytes, on little-endian machines
  }
}

}  // namespace

const PointwiseLoops& loops() {
  static const PointwiseLoops& selected = select_loops();
  return selected;
}

constexpr TaskInfo kAdd = pointwise_info("aten::add.Tensor");
constexpr TaskInfo kSub = pointwise_info("aten::sub.Tensor");
constexpr TaskInfo kMul = pointwise_info("aten::mul.Tensor");
constexpr TaskInfo kDiv = pointwise_info("aten::div.Tensor");
constexpr TaskInfo kRelu = pointwise_info("aten::relu");
constexpr TaskInfo kNeg = pointwise_info("aten::neg");
constexpr TaskInfo kCast = {.name = "aten::copy_", .run = run_cast, .engines = kVectorEngine, .visit = visit_cast};
constexpr TaskInfo kFill = {.name = "aten::fill_", .run = run_fill, .engines = kVectorEngine, .visit = visit_fill};
constexpr TaskInfo kExp = {.name = "aten::exp", .run = run_exp, .engines = kVectorEngine, .visit = visit_exp};

bool supports(PointwiseOp op, DType dtype) {
  return static_cast<int>(dtype) < kArithmeticDTypes &&
         loops().pointwise[static_cast<int>(op)][static_cast<int>(dtype)] != nullptr;
}

bool supports_cast(DType from, DType to) {
  return static_cast<int>(from) < kCastDTypes && static_cast<int>(to) < kCastDTypes &&
         loops().cast[static_cast<int>(from)][static_cast<int>(to)] != nullptr;
}

void set_pattern(FillArguments& arguments, DType dtype, Number value) {
  const size_t bytes = element_bits(arguments.pattern, dtype, value);
  for (size_t at = bytes; at < sizeof(arguments.pattern); at += bytes)
    std::memcpy(arguments.pattern + at, arguments.pattern, bytes);
}

void set_vector_math(const VectorMath& math) { g_math = math; }

bool supports_exp(DType dtype) {
  return (dtype == DType::kFloat32 && g_math.exp_float) || (dtype == DType::kFloat64 && g_math.exp_double);
}

}  // namespace npu::kernels
