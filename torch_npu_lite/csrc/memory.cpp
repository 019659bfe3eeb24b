#include "runtime/memory/caching_allocator.h"

#include <ATen/core/CachingHostAllocator.h>
#include <pybind11/stl.h>

#include "aten/bridge/allocator.h"
#include "aten/bridge/host_allocator.h"
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

// The stream, sizes and blocks of each segment of a device, under torch.cuda.memory_snapshot()'s keys.
py::list snapshot(DeviceIndex device) {
  static constexpr const char* kStates[] = {"active_allocated", "active_pending_free", "inactive"};
  py::list segments;
  if (!has_primary_context(device)) return segments;
  for (const SegmentSnapshot& segment : primary_context(device).allocator().snapshot()) {
    size_t allocated = 0, active = 0, requested = 0;
    py::list blocks;
    for (const BlockSnapshot& block : segment.blocks) {
      using State = BlockSnapshot::State;
      if (block.state == State::kAllocated) allocated += block.bytes;
      if (block.state != State::kInactive) active += block.bytes;
      requested += block.requested_bytes;
      blocks.append(py::dict(py::arg("address") = block.address, py::arg("size") = block.bytes,
                             py::arg("requested_size") = block.requested_bytes,
                             py::arg("state") = kStates[static_cast<size_t>(block.state)],
                             py::arg("frames") = py::list()));
    }
    segments.append(py::dict(py::arg("device") = device, py::arg("address") = segment.address,
                             py::arg("total_size") = segment.bytes, py::arg("allocated_size") = allocated,
                             py::arg("active_size") = active, py::arg("requested_size") = requested,
                             py::arg("stream") = segment.stream,
                             py::arg("segment_type") = segment.kind == StatType::kSmallPool ? "small" : "large",
                             py::arg("segment_pool_id") = py::make_tuple(0, 0), py::arg("is_expandable") = false,
                             py::arg("frames") = py::list(), py::arg("blocks") = blocks));
  }
  return segments;
}

// Microseconds.
py::dict to_dict(const c10::CachingAllocator::DurationStat& stat) {
  const double average = stat.count == 0 ? 0 : static_cast<double>(stat.total) / static_cast<double>(stat.count);
  return py::dict(py::arg("total") = stat.total, py::arg("max") = stat.max, py::arg("min") = stat.min,
                  py::arg("count") = stat.count, py::arg("avg") = average);
}

py::dict to_dict(const c10::CachingAllocator::Stat& stat) {
  return py::dict(py::arg("current") = stat.current, py::arg("peak") = stat.peak, py::arg("allocated") = stat.allocated,
                  py::arg("freed") = stat.freed);
}

// Of pinned memory, under torch.cuda.host_memory_stats()'s keys.
py::dict host_memory_stats() {
  const at::HostStats stats = aten::pinned_allocator().get_stats();
  return py::dict(
      py::arg("allocations") = to_dict(stats.allocations), py::arg("allocated_bytes") = to_dict(stats.allocated_bytes),
      py::arg("active_requests") = to_dict(stats.active_requests),
      py::arg("active_bytes") = to_dict(stats.active_bytes), py::arg("num_host_alloc") = stats.num_host_alloc,
      py::arg("num_host_free") = stats.num_host_free, py::arg("host_alloc_time") = to_dict(stats.host_alloc_time),
      py::arg("host_free_time") = to_dict(stats.host_free_time));
}

}  // namespace

void bind_memory(py::module_& m) {
  m.def("allocate", &allocate);
  m.def("free", &free_address);
  m.def("set_memory_fraction",
        [](DeviceIndex device, double fraction) { primary_context(device).allocator().set_memory_fraction(fraction); });
  m.def("memory_snapshot", &snapshot);
  m.def("check_allocator_settings", &aten::check_allocator_settings);
  m.def("host_memory_stats", &host_memory_stats);
  m.def("reset_peak_host_memory_stats", [] { aten::pinned_allocator().reset_peak_stats(); });
  m.def("reset_accumulated_host_memory_stats", [] { aten::pinned_allocator().reset_accumulated_stats(); });
  m.def("memory_fraction", [](DeviceIndex device) { return primary_context(device).allocator().memory_fraction(); });
}

}  // namespace npu::python
