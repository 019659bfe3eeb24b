#include "runtime/clock.h"

#include <ctime>

namespace npu {
namespace {

class HostClock final : public Clock {
 public:
  int64_t now_ns() const noexcept override {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  }
};

}  // namespace

const Clock& Clock::host() {
  static const HostClock clock;
  return clock;
}

}  // namespace npu
