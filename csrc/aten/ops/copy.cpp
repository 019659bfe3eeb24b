// copy_: any dtype, layout and device to any other.
//
// Memory moves between host and device as whole ranges without gaps (transfer.h). Where layouts or dtypes differ, the
// elements are rearranged on the side that has less to move afterwards: on the host before they go in, on the source
// device before they go out.
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/real.h>
#include <torch/library.h>

#include "aten/ops/arguments.h"
#include "aten/ops/kernel_route.h"
#include "aten/ops/library.h"
#include "aten/ops/transfer.h"
#include "op_counters.h"

namespace npu::aten {
namespace {

bool is_npu(const at::Tensor& tensor) { return tensor.device().type() == c10::DeviceType::PrivateUse1; }

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg();
}

bool is_dense(const at::Tensor& tensor) { return tensor.is_non_overlapping_and_dense(); }

// Whether the memory of one is the memory of the other, byte for byte.
bool is_flat_copy(const at::Tensor& self, const at::Tensor& src) {
  return self.scalar_type() == src.scalar_type() && same_bits(self, src) &&
         ((self.is_contiguous() && src.is_contiguous()) || (is_dense(self) && self.strides() == src.strides()));
}

// An uninitialised tensor for the elements of `layout`, as dense as `layout` is itself.
at::Tensor empty_for(const at::Tensor& layout, at::TensorOptions options) {
  options = options.dtype(layout.scalar_type());
  if (is_dense(layout)) return at::empty_strided(layout.sizes(), layout.strides(), options);
  return at::empty(layout.sizes(), options);
}

// The elements of `src`, rearranged on its own device to the dtype and layout that `self` has or would have when dense.
at::Tensor rearranged(const at::Tensor& src, const at::Tensor& self, bool pinned = false) {
  at::Tensor result = empty_for(self, at::TensorOptions(src.device()).pinned_memory(pinned));
  result._set_conj(self.is_conj());
  result._set_neg(self.is_neg());
  return result.copy_(src);
}

constexpr ArgumentName kCopyNames[] = {{"src"}, {"self", Operand::Access::kWrite}};

void run_rearrange(const TaskContext& context, const void* block) {
  run_library_task(context, block, [](ArgumentReader& in) {
    const at::Tensor src = in.read<at::Tensor>();
    at::Tensor self = in.read_output();
    at::native::copy_(self, src, /*non_blocking=*/false);
  });
}

constexpr TaskInfo kRearrange = make_task("aten::copy_", run_rearrange, kVectorEngine);

// True when the kernel route took it.
bool copy_within(const at::Tensor& self, const at::Tensor& src) {
  if (kernel_route::copy(self, src)) return true;
  at::assert_no_internal_overlap(self);
  at::assert_no_partial_overlap(self, src);
  ArgumentWriter arguments(kCopyNames);
  arguments.write(src);
  arguments.write_output(self);
  arguments.launch(kRearrange);
  return false;
}

void copy_in(const at::Tensor& self, const at::Tensor& src, bool non_blocking) {
  const bool wait = !non_blocking;
  if (is_flat_copy(self, src)) return copy_to_device(self, src, self.nbytes(), wait);
  const at::Tensor host = rearranged(src, self, /*pinned=*/non_blocking);
  if (is_dense(self)) return copy_to_device(self, host, host.nbytes(), wait);
  const at::Tensor device = empty_for(host, self.options());
  copy_to_device(device, host, host.nbytes(), wait);
  copy_within(self, device);
  if (wait) wait_for_copies(self);
}

void copy_out(const at::Tensor& self, const at::Tensor& src, bool non_blocking) {
  if (is_flat_copy(self, src)) return copy_to_host(self, src, self.nbytes(), !non_blocking);
  const at::Tensor device = rearranged(src, self);
  if (is_dense(self)) return copy_to_host(self, device, self.nbytes(), !non_blocking);
  const at::Tensor host = empty_for(device, self.options());
  copy_to_host(host, device, host.nbytes(), /*wait=*/true);
  self.copy_(host);
}

void copy_across(const at::Tensor& self, const at::Tensor& src) {
  const at::Tensor from = is_flat_copy(self, src) ? src : rearranged(src, self);
  if (is_dense(self)) return copy_to_peer(self, from, from.nbytes());
  const at::Tensor arrived = empty_for(from, self.options());
  copy_to_peer(arrived, from, from.nbytes());
  copy_within(self, arrived);
}

// `src` has the sizes of `self`.
void copy_elements(const at::Tensor& self, const at::Tensor& src, bool non_blocking, OpScope& scope) {
  if (self.numel() == 0 || self.is_same(src)) return;
  if (src._is_zerotensor()) {
    at::Tensor(self).zero_();
  } else if (!is_npu(src)) {
    copy_in(self, src, non_blocking);
  } else if (!is_npu(self)) {
    copy_out(self, src, non_blocking);
  } else if (self.device() != src.device()) {
    copy_across(self, src);
  } else if (!copy_within(self, src)) {
    scope.set_route(Route::kLibrary);
  }
}

// In the words of the TensorIterator that copies on the CPU.
at::Tensor expanded(const at::Tensor& src, const at::Tensor& self) {
  const at::DimVector sizes = at::infer_size_dimvector(self.sizes(), src.sizes());
  TORCH_CHECK(at::IntArrayRef(sizes) == self.sizes(), "output with shape ", self.sizes(),
              " doesn't match the broadcast shape ", at::IntArrayRef(sizes));
  return src.expand(self.sizes());
}

void copy(const at::Tensor& self, const at::Tensor& src, bool non_blocking, OpScope& scope) {
  TORCH_CHECK(self.defined() && src.defined(), "copy_: both tensors must be defined");
  TORCH_CHECK(!self._is_zerotensor(),
              "ZeroTensors are immutable. Please materialize the tensor using `.clone()`, if you want a mutable zero "
              "tensor.");
  if (!src._is_zerotensor() && warn_of_lost_parts(src, self))
    return copy(self, at::real(src), non_blocking, scope);  // of which no kernel warns again
  if (self.sizes() == src.sizes())
    copy_elements(self, src, non_blocking, scope);
  else
    copy_elements(self, expanded(src, self), non_blocking, scope);
}

at::Tensor& copy_(at::Tensor& self, const at::Tensor& src, bool non_blocking) {
  OpScope scope(op::copy_, Route::kKernel);
  copy(self, src, non_blocking, scope);
  return self;
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  OpScope scope(op::_copy_from, Route::kKernel);
  copy(dst, self, non_blocking, scope);
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  OpScope scope(op::_copy_from_and_resize, Route::kKernel);
  dst.resize_(self.sizes());
  copy(dst, self, /*non_blocking=*/false, scope);
  return dst;
}

// With the lazy bits of a tensor left to us: PyTorch's fallbacks for them would clone, which copies, without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, ZeroTensor, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("copy_", copy_);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
}

}  // namespace
}  // namespace npu::aten
