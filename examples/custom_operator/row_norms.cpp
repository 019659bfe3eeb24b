// example::row_norms: the Euclidean norm of each row, cut into tiles that run on several cores, with autograd in C++.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>

#include <aten/ops/custom_operator.h>

namespace {

// Tiles are cut by shape alone, so results do not depend on who runs them.
void row_norms(const npu::TaskContext& context, const at::Tensor& x, at::Tensor& out) {
  constexpr int64_t kRowsOfTile = 256;
  const int64_t rows = x.size(0), columns = x.size(1);
  const float* in = x.const_data_ptr<float>();
  float* norms = out.mutable_data_ptr<float>();
  context.parallel_for((rows + kRowsOfTile - 1) / kRowsOfTile, [&](int64_t tile) {
    for (int64_t row = tile * kRowsOfTile; row < std::min(rows, (tile + 1) * kRowsOfTile); ++row) {
      double sum = 0;
      for (int64_t i = 0; i < columns; ++i) sum += double{in[row * columns + i]} * in[row * columns + i];
      norms[row] = static_cast<float>(std::sqrt(sum));
    }
  });
}
const npu::aten::Kernel<row_norms> kRowNorms("example::row_norms", {"x", "out"});

at::Tensor row_norms_npu(const at::Tensor& x) {
  TORCH_CHECK(x.dim() == 2 && x.scalar_type() == at::kFloat, "row_norms: expected a float32 matrix, got ", x.sizes(),
              " of ", x.scalar_type());
  const at::Tensor in = x.contiguous();
  at::Tensor out = at::empty({in.size(0)}, in.options());
  kRowNorms(in, out);
  return out;
}

at::Tensor row_norms_meta(const at::Tensor& x) { return at::empty_symint({x.sym_size(0)}, x.options()); }

class RowNorms : public torch::autograd::Function<RowNorms> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    static const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow("example::row_norms", "").typed<at::Tensor(const at::Tensor&)>();
    const at::Tensor norms = op.call(x);
    context->save_for_backward({x, norms});
    return norms;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = context->get_saved_variables();
    return {saved[0] * (grads[0] / saved[1]).unsqueeze(1)};
  }
};

at::Tensor row_norms_autograd(const at::Tensor& x) { return RowNorms::apply(x); }

}  // namespace

TORCH_LIBRARY_IMPL(example, PrivateUse1, m) { m.impl("row_norms", row_norms_npu); }
TORCH_LIBRARY_IMPL(example, Meta, m) { m.impl("row_norms", row_norms_meta); }
TORCH_LIBRARY_IMPL(example, Autograd, m) { m.impl("row_norms", row_norms_autograd); }
