// Any processor: 128-bit registers.
#include "kernels/pointwise_simd.h"

namespace npu::kernels {
const PointwiseLoops kGenericLoops = NPU_SIMD::kLoops;
}
