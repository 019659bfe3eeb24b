#include "kernels/cpu.h"

#include <unistd.h>

#include <algorithm>

namespace npu::kernels {
namespace {

Isa detect() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    return Isa::kAvx512;
  // Every processor with AVX2 and FMA also converts 16-bit floats (F16C).
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::kAvx2;
#endif
  return Isa::kGeneric;
}

// Half of the last level, but no more than 16 times this core's own cache: virtual machines report the last level of a
// whole socket, of which they get a share that is hardly faster than memory.
size_t measure_streaming_bytes() {
  constexpr long kUsualOwnCache = 1 << 20, kUsualLastCache = 32 << 20;
  const long own = sysconf(_SC_LEVEL2_CACHE_SIZE);
  const long last = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return static_cast<size_t>(std::min((last > 0 ? last : kUsualLastCache) / 2, (own > 0 ? own : kUsualOwnCache) * 16));
}

const Isa g_isa = detect();
const size_t g_streaming_bytes = measure_streaming_bytes();

}  // namespace

Isa isa() { return g_isa; }
size_t streaming_bytes() { return g_streaming_bytes; }

}  // namespace npu::kernels
