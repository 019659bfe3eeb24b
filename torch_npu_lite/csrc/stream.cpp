#include "runtime/stream.h"

#include "bindings.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/event.h"
#include "runtime/gate.h"

namespace npu::python {
namespace py = pybind11;
namespace {

Stream& find(DeviceIndex device, StreamId id) {
  Stream* stream = primary_context(device).find_stream(id);
  NPU_CHECK(stream != nullptr, kInvalidArgument, "npu:", device, " has no stream ", id);
  return *stream;
}

// Milliseconds between the events that two values of torch.Event.event_id name; 0 names one that was never recorded.
double elapsed_time(uintptr_t start, uintptr_t end) {
  NPU_CHECK(start != 0 && end != 0, kInvalidArgument, "elapsed time needs recorded events: call record() on both");
  return reinterpret_cast<const Event*>(end)->elapsed_ms(*reinterpret_cast<const Event*>(start));
}

// The id of the stream that a native handle (torch.Stream.native_handle) names.
StreamId stream_of_handle(DeviceIndex device, uintptr_t handle) {
  for (Stream* stream : primary_context(device).streams())
    if (reinterpret_cast<uintptr_t>(stream) == handle) return stream->id();
  NPU_THROW(kInvalidArgument, "0x", std::hex, handle, " is not the handle of a stream of npu:", std::dec, device);
}

}  // namespace

void bind_stream(py::module_& m) {
  m.def("stream_priority", [](DeviceIndex device, StreamId id) { return find(device, id).priority(); });
  m.def("stream_of_handle", &stream_of_handle);
  m.def("create_stream",
        [](DeviceIndex device, int priority) { return primary_context(device).create_stream(priority).id(); });
  m.def("destroy_stream",
        [](DeviceIndex device, StreamId id) { primary_context(device).destroy_stream(find(device, id)); });
  m.def("elapsed_time", &elapsed_time);
  m.attr("greatest_priority") = kGreatestPriority;
  m.attr("least_priority") = kLeastPriority;

  py::class_<Gate>(m, "Gate")
      .def(py::init([](DeviceIndex device, StreamId id) { return std::make_unique<Gate>(find(device, id)); }))
      .def("open", &Gate::open)
      .def("is_open", &Gate::is_open);
}

}  // namespace npu::python
