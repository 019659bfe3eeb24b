// The only place that names drivers and picks one.
#pragma once

#include <memory>

#include "runtime/config.h"
#include "runtime/driver/driver.h"

namespace npu {

NPU_API std::unique_ptr<Driver> make_driver(const Config& config);

}  // namespace npu
