// Finds what a CPU kernel refuses, at the call and in the kernel's own words: dtypes it has no code for, numbers that
// overflow a dtype, outputs that overlap. Meta functions and shape rules know none of this; without rehearsal the task
// would fail later, as an error of the device. What the kernel warns of is also said at the call: a worker's warnings would
// not reach Python.
//
// A task whose signature is new is run once on the submitting thread, over zeros in scratch memory that lie as its
// operands do. A kernel that gets through has shown that it takes these dtypes: no call of this signature is rehearsed
// again. An error counts when its words say that it follows from the signature; what else fails may be due to the zeros
// or is the business of shape rules, shows nothing about dtypes, and is remembered for these sizes and options alone.
// Some operators leave size checks to their kernels: all that their kernels say counts, and always for these sizes and
// options alone. A call whose kernel warned is remembered in no way, as the next one may have to warn too; a kernel that warns
// of sizes must be of those that check them. Tasks that would take long are not rehearsed: their errors come late, and
// Python does not hear their warnings; save products of matrices that differ in dtype, which kernels refuse before they
// compute.
//
// Threads: any. A call seen before costs a few loads, with sizes and options also a walk over the block; no heap, no lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/export.h"
#include "runtime/task.h"

namespace npu::aten {

// What decides whether a kernel refuses a block of arguments: kinds, dtypes and layout flags of the operands, types of
// numbers and which of them are 0 or 1, and whatever is unusual enough to be refused.
class Signature {
 public:
  void add(uint64_t word) noexcept {
    constexpr uint64_t multiplier = 0x9e3779b97f4a7c15;
    value_ = ((value_ ^ word) * multiplier) ^ (value_ >> 29);
  }
  uint64_t value() const noexcept { return value_; }

 private:
  uint64_t value_ = 1;
};

// What the table (npu_functions.yaml, column `rehearse`) knows of a kernel; flags of its TaskInfo.
enum KernelFlags : uint8_t {
  // Checks, or warns of, more sizes and options than the operator's shape rule knows. A kernel that trusts sizes without a check is not
  // of this kind: it would leave the scratch memory, whose margin is 4 KiB around each operand. Its shape rule must refuse.
  kChecksSizes = kLaunchersOwn,
  // A product that refuses operands of several dtypes before it computes anything, so that it is rehearsed whatever its
  // sizes. Other products take packed weights or scales of dtypes of their own.
  kOfOneDtype = kLaunchersOwn << 1,
};

// `block` is what the task would get, in the form of arguments.h. Throws what its kernel throws. Whether the kernel has
// warned: then the task is to be silent.
bool rehearse(const TaskInfo& info, Signature signature, const void* block, size_t bytes, uint32_t cost_ns);

// Forgets what has been rehearsed, for tests: the next call of any signature is the first.
NPU_API void forget_rehearsals() noexcept;

}  // namespace npu::aten
