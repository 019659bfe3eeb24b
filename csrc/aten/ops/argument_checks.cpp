#include "aten/ops/argument_checks.h"

#include <ATen/Context.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Activation.h>

#include <algorithm>

namespace npu::aten::checks {
namespace {

// The CPU kernels of such operators say so themselves, but a task would say it late, and by the mode of that moment.
void alert_not_deterministic(const char* function) { at::globalContext().alertNotDeterministic(function); }

}  // namespace

void gelu(std::string_view approximate) { at::native::get_gelutype_enum(approximate); }

void masked_fill(const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
}

void put(const at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulate) {
  if (!accumulate) alert_not_deterministic("put_");
  TORCH_CHECK(index.scalar_type() == at::kLong, "put_(): Expected a long tensor for index, but got ",
              index.scalar_type());
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "put_(): self and source expected to have the same dtype, but got self.dtype = ", self.scalar_type(),
              " and source.dtype = ", source.scalar_type());
  TORCH_CHECK_INDEX(source.numel() == index.numel(),
                    "put_(): Expected source and index to have the same number of elements, but got source.numel() = ",
                    source.numel(), ", index.numel() = ", index.numel());
  TORCH_CHECK_INDEX(self.numel() != 0 || index.numel() == 0, "put_(): Tried to put elements into an empty tensor");
  at::assert_no_internal_overlap(self);
  at::assert_no_overlap(self, index);
  at::assert_no_overlap(self, source);
}

void max_unpool2d(const at::Tensor& indices) {
  alert_not_deterministic("max_unpooling2d_forward_out");
  TORCH_CHECK(indices.scalar_type() == at::kLong,
              "elements in indices should be type int64 but got: ", indices.scalar_type());
}

void max_unpool3d(const at::Tensor& indices, at::IntArrayRef output_size, at::IntArrayRef stride,
                  at::IntArrayRef padding) {
  constexpr const char* three = "There should be exactly three elements (depth, height, width) in ";
  alert_not_deterministic("max_unpooling3d_forward_out");
  TORCH_CHECK(indices.scalar_type() == at::kLong, "elements in indices should be type int64");
  TORCH_CHECK(output_size.size() == 3, three, "output_size, but got ", output_size.size(), " elements.");
  TORCH_CHECK(stride.size() == 3, three, "stride, but got: ", stride.size(), " elements.");
  TORCH_CHECK(padding.size() == 3, three, "padding, but got: ", padding.size(), " elements.");
  TORCH_CHECK(std::all_of(stride.begin(), stride.end(), [](int64_t step) { return step > 0; }),
              "strides should be greater than zero, but got stride: ", stride);
}

}  // namespace npu::aten::checks
