#include "aten/ops/members.h"

#include <ATen/NestedTensorImpl.h>
#include <ATen/quantized/QTensorImpl.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <c10/core/DeviceGuard.h>

namespace npu::aten {
namespace {

c10::DispatchKeySet keys_on(const at::Tensor& tensor, c10::Device device) {
  return c10::DispatchKeySet(tensor.options().device(device).computeDispatchKey());
}

at::Tensor coo_with_members(const at::Tensor& tensor, MemberMap map) {
  const auto& from = static_cast<at::SparseTensorImpl&>(*tensor.unsafeGetTensorImpl());
  const at::Tensor indices = map(from.indices());
  const at::Tensor values = map(from.values());
  const c10::DeviceGuard guard(values.device());  // the constructor takes the current device of the key's type
  at::Tensor result = at::detail::make_tensor<at::SparseTensorImpl>(keys_on(tensor, values.device()), tensor.dtype());
  auto& impl = static_cast<at::SparseTensorImpl&>(*result.unsafeGetTensorImpl());
  impl.raw_resize_(from.sparse_dim(), from.dense_dim(), tensor.sizes());
  impl.set_indices_and_values_unsafe(indices, values);
  impl.set_coalesced(from.coalesced());
  return result;
}

at::Tensor compressed_with_members(const at::Tensor& tensor, MemberMap map) {
  const auto& from = static_cast<at::SparseCsrTensorImpl&>(*tensor.unsafeGetTensorImpl());
  const at::Tensor compressed = map(from.compressed_indices());
  const at::Tensor plain = map(from.plain_indices());
  const at::Tensor values = map(from.values());
  at::Tensor result = at::detail::make_tensor<at::SparseCsrTensorImpl>(
      keys_on(tensor, values.device()), values.device(), tensor.layout(), tensor.dtype());
  static_cast<at::SparseCsrTensorImpl&>(*result.unsafeGetTensorImpl())
      .set_member_tensors(compressed, plain, values, tensor.sizes());
  return result;
}

at::Tensor nested_with_members(const at::Tensor& tensor, MemberMap map) {
  const auto& from = static_cast<at::native::NestedTensorImpl&>(*tensor.unsafeGetTensorImpl());
  return at::detail::make_tensor<at::native::NestedTensorImpl>(map(from.get_unsafe_storage_as_tensor()),
                                                               from.get_nested_sizes(), from.get_nested_strides(),
                                                               from.get_storage_offsets());
}

// A dense, empty tensor over the storage of `tensor`.
at::Tensor dense_over(const at::Tensor& tensor, c10::ScalarType dtype) {
  const auto options = at::TensorOptions(dtype).device(tensor.device());
  return at::detail::make_tensor<c10::TensorImpl>(c10::Storage(tensor.storage()),
                                                  c10::DispatchKeySet(options.computeDispatchKey()), options.dtype());
}

// All of the storage: where elements share bytes, sizes do not say how many there are.
at::Tensor bytes_of(const at::Tensor& tensor) {
  at::Tensor bytes = dense_over(tensor, at::kByte);
  bytes.unsafeGetTensorImpl()->set_sizes_contiguous({static_cast<int64_t>(tensor.storage().nbytes())});
  return bytes;
}

at::Tensor quantized_with_members(const at::Tensor& tensor, MemberMap map) {
  const at::Tensor bytes = map(bytes_of(tensor));
  at::Tensor result = at::detail::make_tensor<at::QTensorImpl>(
      c10::Storage(bytes.storage()), keys_on(tensor, bytes.device()), tensor.dtype(),
      with_members(at::get_qtensorimpl(tensor)->quantizer(), map));
  result.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  return result;
}

bool is_compressed(const at::Tensor& tensor) {
  const c10::Layout layout = tensor.layout();
  return layout == at::kSparseCsr || layout == at::kSparseCsc || layout == at::kSparseBsr || layout == at::kSparseBsc;
}

}  // namespace

bool has_members(const at::Tensor& tensor) {
  return tensor.is_sparse() || is_compressed(tensor) || tensor.is_nested() || tensor.is_quantized();
}

at::Tensor with_members(const at::Tensor& tensor, MemberMap map) {
  if (tensor.is_sparse()) return coo_with_members(tensor, map);
  if (is_compressed(tensor)) return compressed_with_members(tensor, map);
  if (tensor.is_nested()) return nested_with_members(tensor, map);
  return quantized_with_members(tensor, map);
}

at::QuantizerPtr with_members(const at::QuantizerPtr& quantizer, MemberMap map) {
  // Asking for the scheme would throw for an output whose quantisation its operator has yet to choose.
  const auto* from = dynamic_cast<const at::PerChannelAffineQuantizer*>(quantizer.get());
  if (from == nullptr) return quantizer;
  const at::Tensor scales = map(from->scales());
  const at::Tensor zero_points = map(from->zero_points());
  if (from->qscheme() == at::kPerChannelAffineFloatQParams)
    return c10::make_intrusive<at::PerChannelAffineFloatQParamsQuantizer>(from->scalar_type(), scales, zero_points,
                                                                          from->axis());
  return c10::make_intrusive<at::PerChannelAffineQuantizer>(from->scalar_type(), scales, zero_points, from->axis());
}

at::Tensor integers_of(const at::Tensor& quantized) {
  const c10::ScalarType dtype = quantized.scalar_type();
  if (dtype == at::kQUInt4x2 || dtype == at::kQUInt2x4) return bytes_of(quantized);
  at::Tensor integers = dense_over(quantized, c10::toUnderlying(dtype));
  integers.unsafeGetTensorImpl()->set_sizes_and_strides(quantized.sizes(), quantized.strides(),
                                                        quantized.storage_offset());
  return integers;
}

void become(const at::Tensor& tensor, const at::Tensor& other) {
  if (is_compressed(tensor)) {  // its shallow_copy_from would leave the members out
    const auto& from = static_cast<at::SparseCsrTensorImpl&>(*other.unsafeGetTensorImpl());
    static_cast<at::SparseCsrTensorImpl&>(*tensor.unsafeGetTensorImpl())
        .set_member_tensors(from.compressed_indices(), from.plain_indices(), from.values(), other.sizes());
    return;
  }
  tensor.unsafeGetTensorImpl()->shallow_copy_from(other.getIntrusivePtr());
}

}  // namespace npu::aten
