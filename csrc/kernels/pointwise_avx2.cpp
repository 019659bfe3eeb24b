// AVX2, FMA and F16C: compiled with those flags, chosen at run time.
#include "kernels/pointwise_simd.h"

namespace npu::kernels {
const PointwiseLoops kAvx2Loops = NPU_SIMD::kLoops;
}
