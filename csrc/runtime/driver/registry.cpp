#include "runtime/driver/registry.h"

#include "runtime/driver/sim/sim_driver.h"

namespace npu {

std::unique_ptr<Driver> make_driver(const Config& config) {
  return std::make_unique<SimDriver>(config.sim, config.hang_report_s);
}

}  // namespace npu
