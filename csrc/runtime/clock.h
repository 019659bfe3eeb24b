// The time that events, busy counters, sleeps and timeouts see. One implementation now: the host's monotonic clock.
// A virtual clock is a second implementation; nothing else in the runtime reads time.
#pragma once

#include <cstdint>

#include "runtime/export.h"

namespace npu {

class NPU_API Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t now_ns() const noexcept = 0;  // any thread; never goes back

  static const Clock& host();
};

}  // namespace npu
