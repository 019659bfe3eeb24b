// Outputs that the caller gives (out=) and that are not as the operator would make them: of another dtype, or neither
// empty nor of the right sizes. What happens then is each CPU kernel's own business: it casts, resizes with or without a
// warning, or refuses in its own words. So the kernel is asked: it runs on the host, over stand-ins.
#pragma once

#include <ATen/core/stack.h>
#include <ATen/core/TensorBody.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace npu::aten {

// What a kernel gets in place of the elements on the device: zeros, ones where it divides integers, and for linear algebra
// what LAPACK gets through with.
enum class StandIn : uint8_t { kZeros, kOnes, kUnitMatrices };

// Calls an operator on CPU tensors of the layout of those on `stack`, which holds its arguments, outputs last. Returns the
// last `outputs` of these tensors as the call has left them; none when linear algebra found the stand-ins themselves singular.
// Errors and warnings: the kernel's. Blocks for as long as the kernel takes on the host, not for the device.
std::vector<at::Tensor> try_on_host(const char* name, const char* overload, StandIn stand_in, size_t outputs,
                                    const torch::jit::Stack& stack);

}  // namespace npu::aten
