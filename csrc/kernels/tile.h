// Cuts a kernel into tiles that workers and a waiting host thread share. Boundaries depend on the size alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/task.h"

namespace npu::kernels {

// Large enough to hide the claim of a tile (about 100 ns), small enough that two threads end together.
inline constexpr int64_t kTileBytes = 256 << 10;

// Calls body(begin, count) for consecutive stretches of `count` elements that are kTileBytes of `element_bytes` each.
template <class Body>
void for_each_tile(const TaskContext& context, int64_t count, size_t element_bytes, const Body& body) {
  const int64_t per_tile = kTileBytes / static_cast<int64_t>(element_bytes);
  if (count <= per_tile) return body(int64_t{0}, count);
  context.parallel_for((count + per_tile - 1) / per_tile, [&](int64_t tile) {
    const int64_t begin = tile * per_tile;
    body(begin, count - begin < per_tile ? count - begin : per_tile);
  });
}

}  // namespace npu::kernels
