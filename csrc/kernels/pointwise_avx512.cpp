// AVX-512 F, BW, VL and DQ: compiled with those flags, chosen at run time.
#include "kernels/pointwise_simd.h"

namespace npu::kernels {
const PointwiseLoops kAvx512Loops = NPU_SIMD::kLoops;
}
