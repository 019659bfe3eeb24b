// Convolution tasks (library_tasks.h): PyTorch's kernels on pieces of the batch, one piece a tile.
//
// The kernels' own OpenMP teams are the alternative, but every thread that runs tasks would bring one, and teams that
// share the cores slow each other down. Pieces also keep the kernels' temporaries in the cache.
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>

#include <algorithm>
#include <tuple>

#include "aten/ops/environment.h"
#include "aten/ops/library_tasks.h"

namespace npu::aten::tasks {
namespace {

// A piece must be worth its fixed costs: the call, and the weight's way into the kernel's layout.
constexpr int64_t kPieceOperations = 16 << 20;  // multiply-adds
constexpr int64_t kPiecePositions = 256;        // to which the weight is applied
constexpr int64_t kMaxPieces = 16;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The batch in pieces of equal length, the last one perhaps shorter. From shapes alone.
class Pieces {
 public:
  // `positions` has an element for each position that the weight is applied to, and each channel.
  Pieces(const at::Tensor& positions, const at::Tensor& weight) : batch_(positions.size(0)), length_(batch_) {
    if (positions.numel() == 0 || weight.numel() == 0) return;
    const int64_t of_image = positions.numel() / positions.size(1) / batch_;
    length_ = std::min(batch_, std::max({divide_up(kPieceOperations, of_image * weight.numel()),
                                         divide_up(kPiecePositions, of_image), divide_up(batch_, kMaxPieces)}));
  }
  bool whole() const { return length_ == batch_; }

  // Calls body(cut) for each piece, several at once; cut(tensor) is the piece of a tensor.
  template <class Body>
  void for_each(const TaskContext& context, const Body& body) const {
    context.parallel_for(divide_up(batch_, length_), [&](int64_t piece) {
      const ThreadWidth single(1);
      const int64_t begin = piece * length_;
      const int64_t length = std::min(length_, batch_ - begin);
      body([=](const at::Tensor& tensor) { return tensor.narrow(0, begin, length); });
    });
  }

 private:
  int64_t batch_, length_;
};

}  // namespace

void convolution(const TaskContext& context, const at::Tensor& input, const at::Tensor& weight,
                 const OptionalTensor& bias, at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                 bool transposed, at::IntArrayRef output_padding, int64_t groups, const at::Tensor& out) {
  const auto compute = [&](const at::Tensor& from) {
    return at::convolution(from, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
  };
  const Pieces pieces(transposed ? input : out, weight);
  if (pieces.whole()) return give(compute(input), out);
  pieces.for_each(context, [&](const auto& cut) { give(compute(cut(input)), cut(out)); });
}

void convolution_backward(const TaskContext& context, const at::Tensor& grad_output, const at::Tensor& input,
                          const at::Tensor& weight, at::IntArrayRef stride, at::IntArrayRef padding,
                          at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding, int64_t groups,
                          std::array<bool, 3> output_mask, const at::Tensor& grad_input, const at::Tensor& grad_weight,
                          const at::Tensor& grad_bias) {
  const std::array<int64_t, 1> bias_sizes = {grad_output.size(1)};
  const auto compute = [&](const at::Tensor& grad, const at::Tensor& from, std::array<bool, 3> mask) {
    return at::convolution_backward(grad, from, weight, at::OptionalIntArrayRef(bias_sizes), stride, padding, dilation,
                                    transposed, output_padding, groups, mask);
  };
  const Pieces pieces(transposed ? input : grad_output, weight);
  // The gradients of weight and bias are sums over the batch and stay whole: cut, they would be rounded in another order
  // than the CPU's.
  const bool whole = pieces.whole();
  if (whole || output_mask[1] || output_mask[2]) {
    const auto [input_result, weight_result, bias_result] =
        compute(grad_output, input, {whole && output_mask[0], output_mask[1], output_mask[2]});
    give(input_result, grad_input);
    give(weight_result, grad_weight);
    give(bias_result, grad_bias);
  }
  if (whole || !output_mask[0]) return;
  pieces.for_each(context, [&](const auto& cut) {
    give(std::get<0>(compute(cut(grad_output), cut(input), {true, false, false})), cut(grad_input));
  });
}

}  // namespace npu::aten::tasks
