#include "runtime/memory/caching_allocator.h"

#include "bindings.h"
#include "runtime/context.h"
#include "runtime/device.h"

namespace npu::python {
namespace py = pybind11;
namespace {

// Raw memory for a stream; the address identifies it.
uintptr_t allocate(DeviceIndex device, StreamId id, size_t bytes) {
  Context& context = primary_context(device);
  Stream* stream = context.find_stream(id);
  NPU_CHECK(stream != nullptr, kInvalidArgument, "npu:", device, " has no stream ", id);
  return reinterpret_cast<uintptr_t>(context.allocator().allocate(bytes, *stream)->address);
}

void free_address(uintptr_t address) {
  for (DeviceIndex device = 0; device < device_count(); ++device) {
    if (!has_primary_context(device)) continue;
    CachingAllocator& allocator = primary_context(device).allocator();
    Block* block = allocator.find(reinterpret_cast<void*>(address));
    if (block != nullptr && block->address == reinterpret_cast<void*>(address)) return allocator.free(block);
  }
  NPU_THROW(kInvalidAddress, "0x", std::hex, address, " is not the start of an allocation on an npu device");
}

}  // namespace

void bind_memory(py::module_& m) {
  m.def("allocate", &allocate);
  m.def("free", &free_address);
  m.def("set_memory_fraction",
        [](DeviceIndex device, double fraction) { primary_context(device).allocator().set_memory_fraction(fraction); });
  m.def("memory_fraction", [](DeviceIndex device) { return primary_context(device).allocator().memory_fraction(); });
}

}  // namespace npu::python
