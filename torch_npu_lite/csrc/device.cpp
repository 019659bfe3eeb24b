#include "runtime/device.h"

#include <pybind11/stl.h>

#include "aten/bridge/sync_debug_mode.h"
#include "aten/ops/op_stats.h"
#include "aten/ops/op_times.h"
#include "aten/ops/rehearsal.h"
#include "bindings.h"
#include "runtime/context.h"

namespace npu::python {
namespace py = pybind11;
namespace {

DeviceProperties properties(DeviceIndex device) {
  const Context& context = primary_context(device);
  return context.driver().properties(context.ordinal());
}

// What op_report() shows of an operator: {"calls": {"kernel": 1, ...}, "host_waits": {cause: 1}, "tasks": 1, ...}.
py::dict op_counts(bool reset) {
  py::dict result;
  for (const auto& [name, stats] : aten::op_stats(reset)) {
    py::dict calls;
    for (int route = 0; route < aten::kRouteCount; ++route)
      calls[aten::to_string(static_cast<aten::Route>(route))] = stats.calls[static_cast<size_t>(route)];
    result[name.c_str()] = py::dict(py::arg("calls") = std::move(calls), py::arg("host_waits") = stats.host_waits,
                                    py::arg("tasks") = stats.tasks, py::arg("queued_ns") = stats.queued_ns,
                                    py::arg("run_ns") = stats.run_ns);
  }
  return result;
}

// {"cube": {"capacity": units, "busy_ns": summed over units, "tasks": started}, ...}
py::dict engine_usage(DeviceIndex device) {
  const Context& context = primary_context(device);
  py::dict result;
  for (int i = 0; i < kEngineCount; ++i) {
    const auto engine = static_cast<Engine>(i);
    const EngineUsage usage = context.driver().engine_usage(context.ordinal(), engine);
    result[to_string(engine)] = py::dict(py::arg("capacity") = usage.capacity, py::arg("busy_ns") = usage.busy_ns,
                                         py::arg("tasks") = usage.tasks);
  }
  return result;
}

}  // namespace

void bind_device(py::module_& m) {
  py::class_<DeviceProperties>(m, "DeviceProperties")
      .def_readonly("name", &DeviceProperties::name)
      .def_readonly("total_memory", &DeviceProperties::memory_bytes)
      .def_readonly("cube_cores", &DeviceProperties::cube_cores)
      .def_readonly("vector_cores", &DeviceProperties::vector_cores)
      .def_readonly("dma_in_engines", &DeviceProperties::dma_in_engines)
      .def_readonly("dma_out_engines", &DeviceProperties::dma_out_engines)
      .def_readonly("clock_mhz", &DeviceProperties::clock_mhz)
      .def_readonly("major", &DeviceProperties::capability_major)
      .def_readonly("minor", &DeviceProperties::capability_minor)
      .def("__repr__", [](const DeviceProperties& p) {
        return npu::detail::concat("DeviceProperties(name='", p.name, "', major=", p.capability_major,
                                   ", minor=", p.capability_minor, ", total_memory=", p.memory_bytes >> 20,
                                   "MB, cube_cores=", p.cube_cores, ", vector_cores=", p.vector_cores, ")");
      });

  m.def("device_count", &device_count);
  m.def("current_device", &current_device);
  m.def("set_device", &set_device);
  m.def("check_device", [](int64_t device) {
    if (const auto index = static_cast<DeviceIndex>(device); index == device) return check_device(index);
    NPU_THROW(kInvalidDevice, "invalid device index ", device, ": this process sees ", device_count(), " npu devices");
  });
  m.def("initialize", [] { driver(); });
  m.def("is_initialized", &is_initialized);
  m.def("in_bad_fork", &in_bad_fork);
  m.def("synchronize", [](DeviceIndex device) { primary_context(device).synchronize(); });
  m.def("device_properties", &properties);
  m.def("engine_usage", &engine_usage, py::arg("device"));
  m.def("sync_debug_mode", [] { return static_cast<int>(aten::sync_debug_mode()); });
  m.def("set_sync_debug_mode", [](int mode) { aten::set_sync_debug_mode(static_cast<aten::SyncDebugMode>(mode)); });
  m.def("op_counts", &op_counts, py::arg("reset") = false);
  m.def("record_op_times", &aten::record_op_times, py::arg("enabled"), py::call_guard<py::gil_scoped_release>());
  m.def("forget_rehearsals", &aten::forget_rehearsals, "For tests: the next call of any operator is its first.");
}

}  // namespace npu::python
