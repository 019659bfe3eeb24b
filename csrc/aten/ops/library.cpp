#include "aten/ops/library.h"

#include <ATen/core/op_registration/adaption.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>

namespace npu::aten {
namespace {

void check_inplace(const at::Tensor& self, at::IntArrayRef sizes, const at::TensorOptions& options) {
  TORCH_CHECK(options.dtype() == self.dtype(), "Bad in-place call: input tensor dtype ", self.dtype(),
              " and output tensor dtype ", options.dtype(), " should match");
  TORCH_CHECK(options.device() == self.device(), "Bad in-place call: input tensor device ", self.device(),
              " and output tensor device ", options.device(), " should match");
  TORCH_CHECK(sizes == self.sizes(), "Bad in-place call: input tensor size ", self.sizes(), " and output tensor size ",
              sizes, " should match");
}

void resize_out(const at::Tensor& out, at::IntArrayRef sizes, at::IntArrayRef strides,
                const at::TensorOptions& options) {
  TORCH_CHECK(options.dtype() == out.dtype(), "Expected out tensor to have dtype ", options.dtype(), ", but got ",
              out.dtype(), " instead");
  TORCH_CHECK(options.device() == out.device(), "Expected out tensor to have device ", options.device(), ", but got ",
              out.device(), " instead");
  if (!at::native::resize_output(out, sizes)) return;
  if (!strides.empty())
    out.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  else if (options.memory_format_opt().has_value())
    out.unsafeGetTensorImpl()->empty_tensor_restride(*options.memory_format_opt());
}

}  // namespace

void OutputSet::set(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options,
                    bool exact) {
  Slot& slot = slots_[index];
  if (format_ && strides.empty()) options = options.memory_format(*format_);
  if (variant_ == Variant::kFunctional) {
    slot.own = allocate(sizes, strides, options);
    return;
  }
  const at::Tensor& given = *slot.given;
  if (settled_) {
    if (given.dtype() != options.dtype()) slot.own = allocate(sizes, strides, options);
    return;
  }
  variant_ == Variant::kInplace ? check_inplace(given, sizes, options) : resize_out(given, sizes, strides, options);
  if (exact && given.strides() != strides) slot.own = allocate(sizes, strides, options);
}

void OutputSet::set(int64_t index, const TensorSpec& spec) {
  if (!spec.defined) return;
  const Slot& slot = slots_[index];
  const bool keep_dtype = slot.given != nullptr && spec.any_dtype;
  const bool keep_strides = slot.given == nullptr || !spec.new_only;
  const at::TensorOptions options =
      keep_strides ? spec.options : spec.options.memory_format(at::MemoryFormat::Contiguous);
  set(index, spec.sizes, keep_strides ? spec.strides : at::IntArrayRef(),
      keep_dtype ? options.dtype(slot.given->scalar_type()) : options,
      /*exact=*/false);
  if (spec.conjugate && slot.given == nullptr) slot.own._set_conj(true);
}

bool OutputSet::unusual(int64_t index, const TensorSpec& spec) const {
  const at::Tensor* given = slots_[index].given;
  if (given == nullptr || !spec.defined) return false;
  const bool empty = given->dim() == 1 && given->numel() == 0;  // torch.empty(0), which every operator resizes
  const bool other_sizes = !empty && given->sizes() != at::IntArrayRef(spec.sizes);
  return other_sizes || given->dtype() != spec.options.dtype();
}

void OutputSet::settle(const std::vector<at::Tensor>& outputs) {
  settled_ = !outputs.empty();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const at::Tensor& given = *slots_[i].given;
    if (given.sizes() == outputs[i].sizes()) continue;
    given.resize_(outputs[i].sizes());
    given.unsafeGetTensorImpl()->set_sizes_and_strides(outputs[i].sizes(), outputs[i].strides());
  }
}

void OutputSet::finish() {
  if (variant_ == Variant::kFunctional) return;
  for (int64_t i = 0; i < count_; ++i)
    if (slots_[i].own.defined()) slots_[i].given->copy_(slots_[i].own);
}

at::Tensor allocate(at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options) {
  const c10::OptionalDeviceGuard guard(options.device_opt());
  c10::Allocator* allocator = c10::GetAllocator(c10::kPrivateUse1);
  const c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
  const at::ScalarType dtype = c10::typeMetaToScalarType(options.dtype());
  if (strides.empty()) return at::detail::empty_generic(sizes, allocator, keys, dtype, options.memory_format_opt());
  return at::detail::empty_strided_generic(sizes, strides, allocator, keys, dtype);
}

at::Tensor allocate_like(const at::Tensor& tensor) { return allocate(tensor.sizes(), {}, tensor.options()); }

bool warn_of_lost_parts(const at::Tensor& from, const at::Tensor& to) {
  const bool loses = from.is_complex() && !to.is_complex() && to.scalar_type() != at::kBool;
  if (!loses || from.numel() == 0 || to.numel() == 0) [[likely]]
    return loses;
  TORCH_WARN_ONCE("Casting complex values to real discards the imaginary part");
  return true;
}

void check_same_device(const char* method, std::initializer_list<NamedTensor> tensors) {
  const NamedTensor* first = nullptr;
  for (const NamedTensor& argument : tensors) {
    if (argument.tensor == nullptr || !argument.tensor->defined()) continue;
    if (first == nullptr) first = &argument;
    if (argument.tensor->device() != first->tensor->device())
      c10::impl::common_device_check_failure(first->tensor->device(), *argument.tensor, method, argument.name);
  }
}

void check_same_device(const char* method, const char* name, at::ITensorListRef tensors) {
  std::optional<c10::Device> device;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    if (!device) device = tensor.device();
    if (tensor.device() != *device) c10::impl::common_device_check_failure(*device, tensor, method, name);
  }
}

}  // namespace npu::aten
