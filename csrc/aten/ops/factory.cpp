// Tensors without contents, and what changes a tensor's storage: empty, resize_, set_.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/set_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "aten/bridge/allocator.h"
#include "aten/ops/counted.h"
#include "runtime/device.h"

namespace npu::aten {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

struct Options {
  at::ScalarType dtype;
  c10::OptionalDeviceGuard guard;

  Options(const char* op, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
          std::optional<c10::Device> device, std::optional<bool> pin_memory)
      : dtype(dtype.value_or(at::get_default_dtype_as_scalartype())) {
    TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided, op, ": an npu tensor of layout ", *layout,
                " is not supported; use torch.strided");
    TORCH_CHECK(!pin_memory.value_or(false), op,
                ": only CPU tensors can be pinned; drop pin_memory or create the tensor on ", "the CPU");
    if (device.has_value() && device->has_index() && device->index() != npu::current_device())
      guard.reset_device(*device);
  }
};

bool fills_uninitialized() {
  const at::Context& context = at::globalContext();
  return context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory();
}

at::Tensor filled(at::TensorBase base) {
  at::Tensor tensor(std::move(base));
  if (fills_uninitialized()) [[unlikely]]
    at::native::fill_empty_deterministic_(tensor);
  return tensor;
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                 std::optional<c10::Device> device, std::optional<bool> pin_memory,
                 std::optional<at::MemoryFormat> memory_format) {
  const Options options("empty", dtype, layout, device, pin_memory);
  return filled(at::detail::empty_generic(size, &device_allocator(), kKeys, options.dtype, memory_format));
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout> layout, std::optional<c10::Device> device,
                         std::optional<bool> pin_memory) {
  const Options options("empty_strided", dtype, layout, device, pin_memory);
  return filled(at::detail::empty_strided_generic(size, stride, &device_allocator(), kKeys, options.dtype));
}

// Zeros that take no memory; operators that do not know them get a filled tensor.
at::Tensor efficient_zero_tensor(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                                 std::optional<at::Layout> layout, std::optional<c10::Device> device,
                                 std::optional<bool> pin_memory) {
  const Options options("_efficientzerotensor", dtype, layout, device, pin_memory);
  at::native::ZeroTensorAllocator allocator(c10::Device(c10::kPrivateUse1, npu::current_device()));
  return at::detail::empty_generic(size, &allocator, kKeys.add(c10::DispatchKey::ZeroTensor), options.dtype,
                                   std::nullopt);
}

c10::Storage new_storage(size_t bytes) {
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes, &device_allocator(),
                                               /*resizable=*/true);
}

// Gives `tensor` a storage of at least `bytes`.
void grow_storage(c10::TensorImpl& tensor, size_t bytes) {
  const c10::Storage& storage = tensor.unsafe_storage();
  if (!storage)
    tensor.set_storage_keep_dtype(new_storage(bytes));
  else if (bytes > storage.nbytes())
    resize_storage(*storage.unsafeGetStorageImpl(), bytes);
}

// The storage grows first: when it cannot, the tensor stays as it was.
void set_layout(c10::TensorImpl& tensor, at::IntArrayRef size, at::OptionalIntArrayRef stride) {
  if (tensor.sizes() == size && (!stride || tensor.strides() == *stride)) return;
  const c10::DeviceGuard guard(tensor.device());
  const auto offset = static_cast<size_t>(tensor.storage_offset());
  const size_t bytes = stride ? at::detail::computeStorageNbytes(size, *stride, tensor.itemsize(), offset)
                              : at::detail::computeStorageNbytesContiguous(size, tensor.itemsize(), offset);
  if (c10::multiply_integers(size) != 0) grow_storage(tensor, bytes);
  stride ? tensor.set_sizes_and_strides(size, *stride) : tensor.set_sizes_contiguous(size);
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> memory_format) {
  c10::TensorImpl& tensor = *self.unsafeGetTensorImpl();
  const auto old_bytes = static_cast<int64_t>(tensor.unsafe_storage() ? tensor.unsafe_storage().nbytes() : 0);
  TORCH_CHECK(memory_format != at::MemoryFormat::Preserve, "Unsupported memory format", *memory_format);
  set_layout(tensor, size, std::nullopt);
  if (memory_format.has_value()) tensor.empty_tensor_restride(*memory_format);
  if (fills_uninitialized()) [[unlikely]]
    at::native::fill_resize_deterministic_(self, old_bytes);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size,
                        at::IntArrayRef stride) {
  at::native::checkSetStorage(self, std::move(source), offset, size, stride);
  c10::TensorImpl& tensor = *self.unsafeGetTensorImpl();
  tensor.set_storage_offset(offset);
  set_layout(tensor, size, stride.data() != nullptr ? at::OptionalIntArrayRef(stride) : std::nullopt);
  return self;
}

at::Tensor& set_empty(at::Tensor& self) {
  const c10::DeviceGuard guard(self.device());
  self.set_(new_storage(0), 0, {0}, {});
  return self;
}

at::Tensor& set_source(at::Tensor& self, at::Storage source) { return at::native::set_(self, std::move(source)); }

void record_stream(at::Tensor& self, c10::Stream stream) {
  device_allocator().recordStream(self.storage().data_ptr(), stream);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_efficientzerotensor", counted<op::_efficientzerotensor, Route::kKernel, efficient_zero_tensor>);
  m.impl("empty.memory_format", counted<op::empty_memory_format, Route::kKernel, empty>);
  m.impl("empty_strided", counted<op::empty_strided, Route::kKernel, empty_strided>);
  m.impl("record_stream", counted<op::record_stream, Route::kView, record_stream>);
  m.impl("resize_", counted<op::resize_, Route::kKernel, resize_>);
  m.impl("set_", counted<op::set_, Route::kView, set_empty>);
  m.impl("set_.source_Storage", counted<op::set__source_Storage, Route::kView, set_source>);
  m.impl("set_.source_Storage_storage_offset",
         counted<op::set__source_Storage_storage_offset, Route::kView, set_storage>);
  m.impl("set_.source_Tensor", counted<op::set__source_Tensor, Route::kView, at::native::set_tensor_>);
}

}  // namespace
}  // namespace npu::aten
