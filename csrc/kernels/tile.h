// Cuts a kernel into tiles that workers and a waiting host thread share. Boundaries depend on the size alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/config.h"
#include "runtime/task.h"

namespace npu::kernels {

// Large enough to hide the claim of a tile (about 100 ns), small enough that two threads end together.
inline constexpr int64_t kTileBytes = 256 << 10;

// Elements of a tile: `usual`, or NPU_SIM_TILE_ELEMENTS where that is set.
inline int64_t tile_elements(int64_t usual) {
  const int64_t chosen = config().sim.tile_elements;
  return chosen != 0 ? chosen : usual;
}

// Calls body(begin, count) for consecutive stretches of `count` elements that are kTileBytes of `element_bytes` each.
// Each begins at a multiple of `unit`, a power of two.
template <class Body>
void for_each_tile(const TaskContext& context, int64_t count, size_t element_bytes, const Body& body,
                   int64_t unit = 1) {
  const int64_t elements = tile_elements(kTileBytes / static_cast<int64_t>(element_bytes));
  const int64_t per_tile = (elements + unit - 1) & -unit;
  if (count <= per_tile) return body(int64_t{0}, count);
  context.parallel_for((count + per_tile - 1) / per_tile, [&](int64_t tile) {
    const int64_t begin = tile * per_tile;
    body(begin, count - begin < per_tile ? count - begin : per_tile);
  });
}

}  // namespace npu::kernels
