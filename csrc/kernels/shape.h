// The shape a user sees, kept beside a kernel's arguments for error reports, dumps and race checks only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"
#include "runtime/task.h"

namespace npu::kernels {

struct Shape {
  static constexpr int kMaxRank = 5;  // deeper shapes are reported as one dimension
  int64_t sizes[kMaxRank];
  int32_t rank;

  void set(const int64_t* from, size_t from_rank, int64_t numel) {
    if (from_rank > kMaxRank) {
      rank = 1;
      sizes[0] = numel;
      return;
    }
    rank = static_cast<int32_t>(from_rank);
    for (size_t d = 0; d < from_rank; ++d) sizes[d] = from[d];
  }
};

// Shows one contiguous operand to a visitor. `slot` is where the arguments keep its address.
template <class T>
void visit_operand(OperandVisitor& visitor, const char* name, Operand::Access access, T*& slot, DType dtype,
                   const Shape& shape, int64_t numel) {
  Operand operand;
  operand.name = name;
  operand.access = access;
  operand.address = const_cast<void**>(reinterpret_cast<const void* const*>(&slot));
  operand.dtype = to_string(dtype);
  operand.rank = shape.rank;
  operand.sizes = shape.sizes;
  operand.bytes = static_cast<size_t>(numel) * size_of(dtype);
  visitor.visit(operand);
}

}  // namespace npu::kernels
