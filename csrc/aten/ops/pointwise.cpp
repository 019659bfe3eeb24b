// Element-wise hot cases (kernel_route.h).
#include "kernels/pointwise.h"

#include "aten/ops/environment.h"
#include "aten/ops/kernel_operand.h"
#include "aten/ops/kernel_route.h"
#include "aten/ops/numbers.h"
#include "aten/ops/strides.h"
#include "kernels/copy.h"

// MKL's vector math, which PyTorch's own exp calls: exported by libtorch_cpu where it was built with MKL, else absent, and
// exp takes its next route.
extern "C" {
[[gnu::weak]] void vmsexp_64_(const int64_t* count, const float* in, float* out, const int64_t* mode);
[[gnu::weak]] void vmdexp_64_(const int64_t* count, const double* in, double* out, const int64_t* mode);
}

namespace npu::aten::kernel_route {
namespace {

using kernels::DType;
using kernels::Number;
using kernels::PointwiseArguments;
using kernels::PointwiseOp;

// A Python number among tensors is a 0-dim CPU tensor with a mark; it never decides a dtype within its category.
enum class Operand2 { kTensor, kNumber, kOther };

// Reads a number in the category of `dtype`; false when it would promote the result.
bool read_number(const at::Tensor& tensor, DType dtype, Number& number) {
  const void* data = tensor.const_data_ptr();
  const bool floating = is_floating(dtype);
  switch (tensor.scalar_type()) {
    case at::kDouble: number.real = *static_cast<const double*>(data); return floating;
    case at::kLong: number.integer = *static_cast<const int64_t*>(data); break;
    case at::kBool: number.integer = *static_cast<const bool*>(data); break;
    default: return false;
  }
  if (floating) number.real = static_cast<double>(number.integer);
  return true;
}

Operand2 classify(const c10::TensorImpl& other) {
  if (is_plain(other)) return Operand2::kTensor;
  return other.is_wrapped_number() && other.device_type() == c10::DeviceType::CPU ? Operand2::kNumber
                                                                                  : Operand2::kOther;
}

// Makes `out` ready for the result of an operation on `self`; false when it is no plain tensor of that kind.
bool prepare_out(const at::Tensor& self, at::Tensor& out) {
  const c10::TensorImpl& like = *self.unsafeGetTensorImpl();
  if (!out.defined()) {
    out = empty_like(like, self.scalar_type());
    return true;
  }
  if (out.is_same(self)) return true;
  const c10::TensorImpl& impl = *out.unsafeGetTensorImpl();
  return is_plain(impl) && out.scalar_type() == self.scalar_type() && out.device() == self.device() &&
         same_layout(impl, like) && !overlaps_partly(out, self);
}

// The part of the test that every operand of one dtype passes.
bool is_operand(const at::Tensor& tensor, DType& dtype) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  return is_plain(impl) && is_dense(impl) && impl.numel() > 0 && to_kernel_dtype(tensor.scalar_type(), dtype);
}

bool pairs_with(const at::Tensor& self, const at::Tensor& other) {
  return other.scalar_type() == self.scalar_type() && other.device() == self.device() &&
         same_layout(*self.unsafeGetTensorImpl(), *other.unsafeGetTensorImpl());
}

void launch_pointwise(const TaskInfo& info, PointwiseOp op, DType dtype, const at::Tensor& self,
                      const at::Tensor* other, Number number, const at::Tensor& out) {
  const c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
  PointwiseArguments arguments;
  arguments.out = out.mutable_data_ptr();
  arguments.self = self.const_data_ptr();
  arguments.other = other != nullptr ? other->const_data_ptr() : nullptr;
  arguments.count = impl.numel();
  arguments.number = number;
  arguments.op = op;
  arguments.dtype = dtype;
  set_shape(arguments.shape, impl);
  const int64_t bytes = impl.numel() * static_cast<int64_t>(impl.itemsize()) * (other != nullptr ? 3 : 2);
  launch(info, out, arguments, kernels::estimate_ns(bytes));
}

bool try_unary(const TaskInfo& info, PointwiseOp op, const at::Tensor& self, at::Tensor& out) {
  DType dtype;
  if (!is_operand(self, dtype) || !supports(op, dtype) || !prepare_out(self, out)) return false;
  launch_pointwise(info, op, dtype, self, nullptr, {}, out);
  return true;
}

// `number` belongs to the tensor form (alpha).
bool try_tensor(const TaskInfo& info, PointwiseOp op, DType dtype, const at::Tensor& self, const at::Tensor& other,
                Number number, at::Tensor& out) {
  if (!supports(op, dtype) || !pairs_with(self, other)) return false;
  if (out.defined() && !out.is_same(other) && overlaps_partly(out, other)) return false;
  if (!prepare_out(self, out)) return false;
  launch_pointwise(info, op, dtype, self, &other, number, out);
  return true;
}

// A TensorIterator over tensors of one shape gives a contiguous result the default strides; over a tensor and a number it
// works out those of dimensions of one element.
bool keeps_strides(const at::Tensor& self, const at::Tensor& out) {
  const c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
  return out.defined() || !impl.is_contiguous() || has_default_strides(impl);
}

bool try_number(const TaskInfo& info, PointwiseOp op, DType dtype, const at::Tensor& self, Number number,
                at::Tensor& out) {
  if (!supports(op, dtype) || !keeps_strides(self, out) || !prepare_out(self, out)) return false;
  launch_pointwise(info, op, dtype, self, nullptr, number, out);
  return true;
}

bool is_one(DType dtype, Number number) { return is_floating(dtype) ? number.real == 1 : number.integer == 1; }

// alpha in the category of the tensor's dtype, negated for sub. False for those that PyTorch refuses or promotes.
bool read_alpha(const at::Scalar& alpha, const at::Tensor& self, DType dtype, bool negate, Number& number) {
  if (alpha.isBoolean() || alpha.isComplex() || alpha.isSymbolic()) return false;
  if (!fits_all(alpha) && !fits(alpha, self.scalar_type())) return false;
  if (is_floating(dtype)) {
    number.real = negate ? -alpha.toDouble() : alpha.toDouble();
    return true;
  }
  if (alpha.isFloatingPoint()) return false;
  const auto value = static_cast<uint64_t>(alpha.toLong());  // unsigned: may wrap
  number.integer = static_cast<int64_t>(negate ? -value : value);
  return true;
}

// self + alpha * other; sub is the same with -alpha.
bool try_add(const TaskInfo& info, bool negate, const at::Tensor& self, const at::Tensor& other,
             const at::Scalar& alpha, at::Tensor& out) {
  DType dtype;
  Number factor, number;
  if (!is_operand(self, dtype) || !read_alpha(alpha, self, dtype, negate, factor)) return false;
  const bool plus = is_one(dtype, factor);
  const bool minus = is_floating(dtype) ? factor.real == -1 : factor.integer == -1;
  switch (classify(*other.unsafeGetTensorImpl())) {
    case Operand2::kTensor: {
      const PointwiseOp op = plus ? PointwiseOp::kAdd : minus ? PointwiseOp::kSub : PointwiseOp::kAddScaled;
      return try_tensor(info, op, dtype, self, other, factor, out);
    }
    case Operand2::kNumber:
      if (!read_number(other, dtype, number) || (negate && other.scalar_type() == at::kBool)) return false;
      if (!is_floating(dtype)) {
        number.integer =
            static_cast<int64_t>(static_cast<uint64_t>(number.integer) * static_cast<uint64_t>(factor.integer));
      } else if (minus) {
        number.real = -number.real;
      } else if (!plus) {
        return false;  // PyTorch's vector and scalar loops round this differently
      }
      return try_number(info, PointwiseOp::kAddNumber, dtype, self, number, out);
    default: return false;
  }
}

bool try_binary(const TaskInfo& info, PointwiseOp op, PointwiseOp number_op, const at::Tensor& self,
                const at::Tensor& other, at::Tensor& out) {
  DType dtype;
  Number number;
  if (!is_operand(self, dtype)) return false;
  switch (classify(*other.unsafeGetTensorImpl())) {
    case Operand2::kTensor: return try_tensor(info, op, dtype, self, other, {}, out);
    case Operand2::kNumber:
      return read_number(other, dtype, number) && try_number(info, number_op, dtype, self, number, out);
    default: return false;
  }
}

template <class T, auto function>
void call_exp(const T* in, T* out, int64_t count) {
  const ThreadWidth single(1);
  constexpr int64_t kHighAccuracy = 2, kIgnoreErrors = 0x100;  // VML_HA, VML_ERRMODE_IGNORE
  const int64_t mode = kHighAccuracy | kIgnoreErrors;
  function(&count, in, out, &mode);
}

const bool registered = [] {
  if (vmsexp_64_ == nullptr || vmdexp_64_ == nullptr) return false;
  kernels::set_vector_math({call_exp<float, vmsexp_64_>, call_exp<double, vmdexp_64_>});
  return true;
}();

}  // namespace

bool add(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, at::Tensor& out) {
  return try_add(kernels::kAdd, /*negate=*/false, self, other, alpha, out);
}

bool sub(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, at::Tensor& out) {
  return try_add(kernels::kSub, /*negate=*/true, self, other, alpha, out);
}

bool mul(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return try_binary(kernels::kMul, PointwiseOp::kMul, PointwiseOp::kMulNumber, self, other, out);
}

bool div(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return try_binary(kernels::kDiv, PointwiseOp::kDiv, PointwiseOp::kDivNumber, self, other, out);
}

bool relu(const at::Tensor& self, at::Tensor& out) { return try_unary(kernels::kRelu, PointwiseOp::kRelu, self, out); }

bool neg(const at::Tensor& self, at::Tensor& out) { return try_unary(kernels::kNeg, PointwiseOp::kNeg, self, out); }

bool exp(const at::Tensor& self, at::Tensor& out) {
  DType dtype;
  if (!is_operand(self, dtype) || !kernels::supports_exp(dtype) || !prepare_out(self, out)) return false;
  const c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
  kernels::ExpArguments arguments{out.mutable_data_ptr(), self.const_data_ptr(), impl.numel(), dtype, {}};
  set_shape(arguments.shape, impl);
  constexpr int64_t kBytesPerExp = 32;  // as long as moving so many
  launch(kernels::kExp, out, arguments, kernels::estimate_ns(impl.numel() * kBytesPerExp));
  return true;
}

bool copy(const at::Tensor& self, const at::Tensor& src) {
  DType to, from;
  if (!is_operand(self, to) || !is_operand(src, from) || self.device() != src.device() ||
      !same_layout(*self.unsafeGetTensorImpl(), *src.unsafeGetTensorImpl()) || overlaps_partly(self, src))
    return false;
  const c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
  void* const out = self.mutable_data_ptr();
  const void* const in = src.const_data_ptr();
  if (to == from) {
    const size_t bytes = self.nbytes();
    launch(kernels::kCopyWithin, self, kernels::CopyArguments{out, in, bytes},
           kernels::estimate_ns(static_cast<int64_t>(2 * bytes)));
    return true;
  }
  if (out == in || !kernels::supports_cast(from, to)) return false;
  kernels::CastArguments arguments{out, in, impl.numel(), to, from, {}};
  set_shape(arguments.shape, impl);
  launch(kernels::kCast, self, arguments, kernels::estimate_ns(static_cast<int64_t>(self.nbytes() + src.nbytes())));
  return true;
}

}  // namespace npu::aten::kernel_route
