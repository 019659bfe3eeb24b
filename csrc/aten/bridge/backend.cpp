// What loading the library does: names the backend, and ends the devices when the process ends.
#include <c10/core/DeviceType.h>

#include <cstdlib>

#include "runtime/device.h"

namespace npu::aten {
namespace {

const bool g_loaded = [] {
  c10::register_privateuse1_backend("npu");
  std::atexit([] { npu::shutdown(); });
  return true;
}();

}  // namespace
}  // namespace npu::aten
