#include "kernels/copy.h"

#include <cstring>

#include "kernels/cpu.h"
#include "kernels/pointwise_loops.h"
#include "kernels/shape.h"
#include "kernels/tile.h"

namespace npu::kernels {
namespace {

// Source and destination together decide, over all tiles.
bool is_streaming(size_t bytes) { return 2 * bytes > streaming_bytes(); }

void copy_tile(void* to, const void* from, size_t bytes, bool streaming) {
  if (streaming)
    loops().copy_streaming(to, from, static_cast<int64_t>(bytes));
  else if (bytes != 0)  // with nothing to copy the addresses may be null
    std::memcpy(to, from, bytes);
}

enum class Side { kHost, kDevice };

template <Side to_side, Side from_side>
void run_copy(const TaskContext& context, const void* arguments) {
  const auto& a = *static_cast<const CopyArguments*>(arguments);
  char* to = static_cast<char*>(to_side == Side::kDevice ? context.translate(a.to) : a.to);
  const char* from = static_cast<const char*>(from_side == Side::kDevice ? context.translate(a.from) : a.from);
  if (to == from) return;
  const bool streaming = is_streaming(a.bytes);
  for_each_tile(context, static_cast<int64_t>(a.bytes), 1, [&](int64_t begin, int64_t count) {
    copy_tile(to + begin, from + begin, static_cast<size_t>(count), streaming);
  });
}

void visit_copy(void* arguments, OperandVisitor& visitor) {
  auto& a = *static_cast<CopyArguments*>(arguments);
  const auto bytes = static_cast<int64_t>(a.bytes);
  const Shape shape = {{bytes}, 1};
  visit_operand(visitor, "from", Operand::Access::kRead, a.from, DType::kUInt8, shape, bytes);
  visit_operand(visitor, "to", Operand::Access::kWrite, a.to, DType::kUInt8, shape, bytes);
}

constexpr TaskInfo copy_info(decltype(TaskInfo::run) run, EngineMask engines, uint8_t flags) {
  return {.name = "aten::copy_", .run = run, .engines = engines, .flags = flags, .visit = visit_copy};
}
constexpr auto run_in = run_copy<Side::kDevice, Side::kHost>;
constexpr auto run_out = run_copy<Side::kHost, Side::kDevice>;
constexpr auto run_within = run_copy<Side::kDevice, Side::kDevice>;
constexpr uint8_t kNever = 0;  // never on a host thread

}  // namespace

void copy_bytes(void* to, const void* from, size_t bytes) {
  if (to != from) copy_tile(to, from, bytes, is_streaming(bytes));
}

constexpr TaskInfo kCopyIn = copy_info(run_in, kDmaInEngine, kInlineable);
constexpr TaskInfo kCopyInAsync = copy_info(run_in, kDmaInEngine, kNever);
constexpr TaskInfo kCopyOut = copy_info(run_out, kDmaOutEngine, kInlineable);
constexpr TaskInfo kCopyOutAsync = copy_info(run_out, kDmaOutEngine, kNever);
constexpr TaskInfo kCopyWithin = copy_info(run_within, kVectorEngine, kInlineable);

}  // namespace npu::kernels
