#include "aten/bridge/copy_bytes.h"

#include <cstring>

namespace npu::aten {
namespace {

struct CopyArguments {
  void* destination;
  const void* source;
  size_t bytes;
};

void visit_copy(void* arguments, OperandVisitor& visitor) {
  auto& copy = *static_cast<CopyArguments*>(arguments);
  const int64_t size = static_cast<int64_t>(copy.bytes);
  visitor.visit({.name = "destination", .access = Operand::Access::kWrite, .address = &copy.destination, .dtype = "uint8",
                 .rank = 1, .sizes = &size, .bytes = copy.bytes});
  visitor.visit({.name = "source", .access = Operand::Access::kRead, .address = const_cast<void**>(&copy.source),
                 .dtype = "uint8", .rank = 1, .sizes = &size, .bytes = copy.bytes});
}

void run_copy(const TaskContext& context, const void* arguments) {
  const auto& copy = *static_cast<const CopyArguments*>(arguments);
  std::memcpy(context.translate(copy.destination), context.translate(copy.source), copy.bytes);
}

constexpr TaskInfo kCopyBytes{
    .name = "npu::copy_bytes", .run = run_copy, .engines = kVectorEngine, .flags = kInlineable, .visit = visit_copy};

}  // namespace

void copy_bytes(Stream& stream, void* destination, const void* source, size_t bytes) {
  if (bytes > 0) stream.launch(kCopyBytes, CopyArguments{destination, source, bytes});
}

}  // namespace npu::aten
