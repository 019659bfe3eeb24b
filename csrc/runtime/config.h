// Every setting of the runtime and the simulated device, read once from the environment.
//
// docs/configuration.md lists the variables. A value that cannot be used is an error that names the variable, the value
// and what would be right; it is thrown by the first call that needs the configuration, and by each later one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/export.h"
#include "runtime/log.h"

namespace npu {

enum class FallbackMode : uint8_t { kAllow, kWarn, kError };

// The simulated device (NPU_SIM_*).
struct SimOptions {
  int devices = 2;
  size_t memory_bytes = 0;  // capacity of one device; 0 = default_device_memory() in machine_memory.h
  size_t window_bytes = 0;  // address window of one device; 0 = 4 x capacity, at most 256 GiB
  int workers = 0;          // worker threads of the whole process; 0 = one for each core
  int cube_cores = 8;       // engine capacities of one device
  int vector_cores = 16;
  int dma_in_engines = 1;
  int dma_out_engines = 1;
  int queue_depth = 2048;       // slots of one stream's queue; a power of two
  bool inline_tasks = true;     // tiny tasks may run on the submitting thread
  bool deterministic = false;   // the allocator never takes a block of another stream
  bool unified_memory = false;  // device addresses are readable by the host
  int tile_elements = 0;        // elements of one tile of a large task; 0 = each kernel's own choice
};

struct Config {
  std::optional<std::vector<int>> visible_devices;  // NPU_VISIBLE_DEVICES; ordinals of the driver
  bool launch_blocking = false;
  bool traceback = false;
  bool fault_report = true;  // a host access to device memory prints device, allocation and stream before it dies
  FallbackMode fallback = FallbackMode::kWarn;
  LogLevel log_level = LogLevel::kWarning;
  double hang_report_s = 60;  // 0 = never
  double exit_timeout_s = 5;
  SimOptions sim;
};

// Looks a variable up; empty when it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

NPU_API Config read_config(const Environment& environment);  // pure; throws kInvalidArgument
// For each name that begins with NPU_ and is not a setting: a warning that names the nearest one.
NPU_API std::vector<std::string> unknown_variables(const std::vector<std::string>& names);
NPU_API const Config& config();  // of this process, read at the first call

}  // namespace npu
