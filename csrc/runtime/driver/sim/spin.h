// Busy waiting that stays polite: pauses first, then gives the core away.
#pragma once

#include <sched.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace npu {

inline void cpu_pause() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

class Spin {
 public:
  void pause_or_yield() noexcept {
    if (++rounds_ < 1000)
      cpu_pause();
    else
      sched_yield();
  }

 private:
  int rounds_ = 0;
};

}  // namespace npu
