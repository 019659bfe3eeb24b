// How long the tasks of each operator are queued and how long they run; op_stats() has the sums.
//
// Off until asked for, as each task then takes a lock three times. Tasks submitted while it is on count when they end, for
// the operator that was entered, also when it is composed of others; tasks of no operator count by their own name.
// Threads: any.
#pragma once

#include "runtime/export.h"

namespace npu::aten {

// Returns whether it was on before. Turning it off forgets the tasks that have not ended.
NPU_API bool record_op_times(bool enabled);

}  // namespace npu::aten
