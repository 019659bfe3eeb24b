// Operators that PyTorch composes of CPU kernels for tensors of all devices: the same, composed of operators of npu, or a
// refusal where there is nothing to compose.
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/_reshape_from_tensor_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/range.h>
#include <ATen/ops/stack.h>
#include <torch/library.h>

#include <tuple>

#include "aten/ops/counted.h"
#include "aten/ops/iterator.h"

namespace npu::aten {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> batch_norm_no_update(
    const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
    const OptionalTensor& running_mean, const OptionalTensor& running_var, double momentum, double eps) {
  auto [output, mean, inverse_deviation] =
      at::native_batch_norm(input, weight, bias, running_mean, running_var, /*training=*/false, momentum, eps);
  return {output, mean, inverse_deviation, at::empty({0}, input.options().dtype(at::kByte))};
}

at::Tensor& range_without_step(const at::Scalar& start, const at::Scalar& end, at::Tensor& out) {
  return at::range_outf(start, end, 1, out);
}

at::Tensor& stack_out(at::TensorList tensors, int64_t dim, at::Tensor& out) {
  return at::stack_outf(tensors, dim, out);
}

at::Tensor reshape_from_tensor(const at::Tensor& self, const at::Tensor& shape) {
  return at::native::_reshape_from_tensor(self, shape.cpu());
}

constexpr ArgumentName kKaiserNames[] = {{"out", Operand::Access::kWrite}, {"self"}, {"window_length"}, {"beta"}};

void run_kaiser_window(const TaskContext& context, const void* block) {
  ArgumentReader in(context, block);
  const Plan plan(in);
  const auto window_length = in.read<int64_t>();
  const auto beta = in.read<double>();
  plan.run(at::native::kaiser_window_stub, window_length, beta);
}
constexpr TaskInfo kKaiserWindow = make_task("aten::kaiser_window", run_kaiser_window, kVectorEngine);

// What kaiser_window does to the positions in a window.
void kaiser_window(at::TensorIteratorBase& iterator, const int64_t window_length, const double beta) {
  if (iterator.numel() == 0) return;
  ArgumentWriter arguments(kKaiserNames);
  TORCH_INTERNAL_ASSERT(write_plan(iterator, {}, arguments));
  arguments.write(window_length);
  arguments.write(beta);
  arguments.launch(kKaiserWindow);
}

// FBGEMM's packed weights are objects of the host, behind pointers of its own.
void refuse_packed_weights(const c10::OperatorHandle& op, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, op.schema().operator_name(),
                              " is about weights packed for the CPU (FBGEMM), which are nowhere but there: move its "
                              "arguments to the CPU");
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const char* name :
       {"fbgemm_pack_gemm_matrix_fp16", "fbgemm_pack_quantized_matrix", "fbgemm_pack_quantized_matrix.KN",
        "fbgemm_linear_fp16_weight", "fbgemm_linear_fp16_weight.out", "fbgemm_linear_fp16_weight_fp32_activation",
        "fbgemm_linear_fp16_weight_fp32_activation.out", "fbgemm_linear_int8_weight",
        "fbgemm_linear_int8_weight_fp32_activation"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&refuse_packed_weights>());
  m.impl("_batch_norm_no_update", counted<op::_batch_norm_no_update, Route::kLibrary, batch_norm_no_update>);
  m.impl("range.out_", counted<op::range_out_, Route::kLibrary, range_without_step>);
  m.impl("_stack.out", counted<op::_stack_out, Route::kLibrary, stack_out>);
  m.impl("_reshape_from_tensor", counted<op::_reshape_from_tensor, Route::kLibrary, reshape_from_tensor>);
}

// A view of the operator's tensor, whose own derivative it has.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("_reshape_from_tensor", counted<op::_reshape_from_tensor, Route::kLibrary, reshape_from_tensor>);
}

}  // namespace
}  // namespace npu::aten

namespace at::native {

REGISTER_PRIVATEUSE1_DISPATCH(kaiser_window_stub, &npu::aten::kaiser_window)

}  // namespace at::native
