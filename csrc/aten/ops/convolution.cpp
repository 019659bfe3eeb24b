// Convolution tasks (library_tasks.h): PyTorch's kernels on pieces of the batch, one piece a tile, for the output and the
// gradient of the input. The gradients of weight and bias are sums over the batch and stay whole.
//
// The kernels' own OpenMP teams are the alternative, but every thread that runs tasks would bring one, and teams that
// share the cores slow each other down. Pieces also keep the kernels' temporaries in the cache.
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>

#include <algorithm>
#include <tuple>

#include "aten/ops/environment.h"
#include "aten/ops/library_tasks.h"
#include "kernels/tile.h"

namespace npu::aten::tasks {
namespace {

// A piece must be worth its fixed costs: the call, and the weight's way into the kernel's layout.
constexpr int64_t kPieceOperations = 16 << 20;  // multiply-adds
constexpr int64_t kPiecePositions = 256;        // to which the weight is applied
constexpr int64_t kMaxPieces = 16;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Geometry {
  at::IntArrayRef stride, padding, dilation;
  bool transposed;
  at::IntArrayRef output_padding;
  int64_t groups;
};

// Which of its kernels PyTorch takes; that depends on the batch and the thread's OpenMP width, too.
at::native::ConvBackend backend_of(const at::Tensor& input, const at::Tensor& weight, const Geometry& geometry) {
  const auto symbolic = [](at::IntArrayRef values) { return c10::fromIntArrayRefSlow(values); };
  return at::native::select_conv_backend(input, weight, std::nullopt, symbolic(geometry.stride),
                                         symbolic(geometry.padding), symbolic(geometry.dilation), geometry.transposed,
                                         symbolic(geometry.output_padding), geometry.groups, std::nullopt);
}

// The batch in pieces of equal length, the last one perhaps shorter. From shapes alone.
class Pieces {
 public:
  Pieces(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& output, const Geometry& geometry)
      : batch_(input.size(0)), length_(batch_) {
    if (input.numel() == 0 || weight.numel() == 0 || output.numel() == 0) return;
    const at::Tensor& positions = geometry.transposed ? input : output;  // that the weight is applied to
    const int64_t of_image = positions.numel() / positions.size(1) / batch_;
    const int64_t asked = kernels::tile_elements(0);
    length_ = asked != 0 ? divide_up(asked, output.numel() / batch_)
                         : std::max({divide_up(kPieceOperations, of_image * weight.numel()),
                                     divide_up(kPiecePositions, of_image), divide_up(batch_, kMaxPieces)});
    length_ = std::min(batch_, length_);
    if (!whole() && !same_kernel(input, weight, geometry)) length_ = batch_;
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
  // Another kernel would round otherwise than the CPU does.
  bool same_kernel(const at::Tensor& input, const at::Tensor& weight, const Geometry& geometry) const {
    const at::native::ConvBackend whole = backend_of(input, weight, geometry);
    const ThreadWidth single(1);
    const int64_t last = batch_ % length_;
    return backend_of(input.narrow(0, 0, length_), weight, geometry) == whole &&
           (last == 0 || backend_of(input.narrow(0, 0, last), weight, geometry) == whole);
  }

  int64_t batch_, length_;
};

}  // namespace

void convolution(const TaskContext& context, const at::Tensor& input, const at::Tensor& weight,
                 const OptionalTensor& bias, at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                 bool transposed, at::IntArrayRef output_padding, int64_t groups, const at::Tensor& out) {
  const auto compute = [&](const at::Tensor& from) {
    return at::convolution(from, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
  };
  const Pieces pieces(input, weight, out, {stride, padding, dilation, transposed, output_padding, groups});
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
  const Pieces pieces(input, weight, grad_output, {stride, padding, dilation, transposed, output_padding, groups});
  // Cut, sums over the batch would be rounded in another order than the CPU's.
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
