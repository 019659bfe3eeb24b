#include "aten/ops/shape_rules.h"

#include <ATen/Dispatch.h>
#include <ATen/ExpandUtils.h>
#include <ATen/native/RangeUtils.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/TensorIterator.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <c10/util/MaybeOwned.h>

#include <algorithm>

namespace npu::aten::shapes {
namespace {

at::ScalarType real_type(at::ScalarType dtype) {
  return at::isComplexType(dtype) ? c10::toRealValueType(dtype) : dtype;
}

at::ScalarType floating_type(at::ScalarType dtype) {
  return at::isIntegralType(dtype, /*includeBool=*/true) ? at::typeMetaToScalarType(at::get_default_dtype())
                                                         : real_type(dtype);
}

// What a TensorIterator over these inputs would allocate. It is built as for meta tensors: sizes and strides only.
class Elementwise final : at::TensorIteratorBase {
 public:
  explicit Elementwise(c10::ArrayRef<const at::Tensor*> inputs) {
    is_meta_ = true;
    at::TensorIteratorConfig config;
    config.check_all_same_dtype(false).check_all_same_device(false);
    config.declare_static_dtype_and_device(at::kByte, c10::Device(at::kMeta)).add_output(none_);
    for (const at::Tensor* input : inputs) config.add_const_input(*input);
    build(config);
  }
  c10::SmallVector<int64_t, 6> sizes;
  c10::SmallVector<int64_t, 6> strides;

 private:
  void set_output_raw_strided(int64_t, at::IntArrayRef new_sizes, at::IntArrayRef new_strides,
                              at::TensorOptions) override {
    sizes.assign(new_sizes.begin(), new_sizes.end());
    strides.assign(new_strides.begin(), new_strides.end());
  }
  const at::Tensor& maybe_get_output(int64_t) override { return none_; }

  const at::Tensor none_;
};

const at::Tensor& on_device(const at::Tensor& a, const at::Tensor& b) { return a.device().is_privateuseone() ? a : b; }

bool copied_densely(const at::TensorBase& input, at::ScalarType common) {
  return input.scalar_type() != common && !input.is_non_overlapping_and_dense();
}

// A tensor with the layout of what the CPU computes on: `input`, which has to outlive it, or its copy of the common dtype.
c10::MaybeOwned<at::Tensor> as_computed(const at::Tensor& input, at::ScalarType common) {
  using Layout = c10::MaybeOwned<at::Tensor>;
  if (!copied_densely(input, common)) [[likely]]
    return Layout::borrowed(input);
  const at::TensorOptions options = input.options().device(at::kMeta);
  return Layout::owned(at::empty_strided(input.sizes(), input.strides(), options).to(common));
}

TensorSpec elementwise(c10::ArrayRef<const at::Tensor*> inputs, const at::TensorOptions& options) {
  const at::Tensor& first = *inputs.front();
  const auto all = [&](auto&& test) {
    return std::all_of(inputs.begin(), inputs.end(), [&](const at::Tensor* input) { return test(*input); });
  };
  TensorSpec spec = of(first.sizes(), options);
  // The layouts that a TensorIterator keeps without a closer look; for these it would want a real output.
  constexpr auto channels_last = at::MemoryFormat::ChannelsLast;
  const bool same_sizes = all([&](const at::Tensor& input) { return input.sizes() == first.sizes(); });
  if (same_sizes && all([](const at::Tensor& input) { return input.is_contiguous(); })) return spec;
  if (same_sizes && all([](const at::Tensor& input) { return input.is_contiguous(channels_last); })) {
    const std::vector<int64_t> strides = c10::get_channels_last_strides_2d(first.sizes());
    spec.strides.assign(strides.begin(), strides.end());
    return spec;
  }
  const bool same_strides = all([&](const at::Tensor& input) { return input.strides() == first.strides(); });
  if (same_sizes && same_strides && first.is_non_overlapping_and_dense()) {
    spec.strides.assign(first.strides().begin(), first.strides().end());
    return spec;
  }
  Elementwise iterator(inputs);
  spec.sizes = std::move(iterator.sizes);
  spec.strides = std::move(iterator.strides);
  return spec;
}

// Operands of the `common` dtype, a result of `dtype`.
TensorSpec broadcast_as(const at::Tensor& a, const at::Tensor& b, at::ScalarType common, at::ScalarType dtype) {
  const auto left = as_computed(a, common), right = as_computed(b, common);
  TensorSpec spec = elementwise({&*left, &*right}, on_device(a, b).options().dtype(dtype));
  spec.any_dtype = true;
  return spec;
}

int64_t closed_range_length(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step) {
  at::native::arange_check_bounds(start, end, step);
  if (start.isIntegral(false) && end.isIntegral(false) && step.isIntegral(false))
    return (end.toLong() - start.toLong()) / step.toLong() + 1;
  return static_cast<int64_t>((end.toDouble() - start.toDouble()) / step.toDouble() + 1);
}

void check_histogram_input(const at::Tensor& self, int64_t dimensions) {
  TORCH_CHECK(self.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions");
  TORCH_CHECK(self.size(-1) == dimensions,
              "histogramdd: The size of bins must be equal to the innermost dimension of the input.");
}

void check_bin_edges(const at::Tensor& edges, size_t dimension) {
  TORCH_CHECK(edges.dim() == 1, "torch.histogramdd: bins tensor should have one dimension, but got ", edges.dim(),
              " dimensions in the bins tensor for dimension ", dimension);
  TORCH_CHECK(edges.numel() > 0, "torch.histogramdd: bins tensor should have at least 1 element, but got ",
              edges.numel(), " elements in the bins tensor for dimension ", dimension);
}

void check_boundaries(const at::Tensor& boundaries) {
  TORCH_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
}

// `sizes` are those of the values that are searched for.
void check_searchsorted(const at::Tensor& sorted_sequence, at::IntArrayRef sizes, bool right,
                        std::optional<std::string_view> side, const std::optional<at::Tensor>& sorter) {
  TORCH_CHECK(!side || *side == "left" || *side == "right",
              "torch.searchsorted(): side can only be 'left' or 'right' but got ", *side);
  TORCH_CHECK(!side || !right || *side == "right",
              "torch.searchsorted(): side and right can't be set to opposites, got side of ", *side,
              " while right was True");
  TORCH_CHECK(!sorter || !sorter->defined() || sorter->sizes() == sorted_sequence.sizes(),
              "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor ",
              sorted_sequence.sizes(), "and got sorter tensor ", sorter->sizes());
  const int64_t dims = sorted_sequence.dim();
  TORCH_CHECK(!sizes.empty() || dims == 1,
              "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we ",
              "got boundaries tensor dim(", dims, ") and input value's dim(", sizes.size(), ") numel(",
              c10::multiply_integers(sizes), ")");
  TORCH_CHECK(dims != 0, "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
  const auto batch = static_cast<size_t>(dims - 1);
  TORCH_CHECK(
      dims == 1 || (static_cast<int64_t>(sizes.size()) == dims &&
                    sizes.slice(0, batch) == sorted_sequence.sizes().slice(0, batch)),
      "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries ",
      "tensor and input value tensor must match, but we got boundaries tensor ", sorted_sequence.sizes(),
      " and input value tensor ", sizes);
}

// Where one number belongs.
TensorSpec place(const at::Tensor& boundaries, bool int32) {
  return of({}, boundaries.options().dtype(int32 ? at::kInt : at::kLong));
}

}  // namespace

TensorSpec of(at::IntArrayRef sizes, const at::TensorOptions& options) {
  return {.sizes = {sizes.begin(), sizes.end()}, .options = options.memory_format(std::nullopt)};
}

TensorSpec none() { return {.sizes = {}, .options = {}, .defined = false}; }

TensorSpec like(const at::Tensor& self) {
  TensorSpec spec = of(self.sizes(), self.options());
  if (self.is_non_overlapping_and_dense()) {
    spec.strides.assign(self.strides().begin(), self.strides().end());
  } else {
    const std::vector<int64_t> dense = at::infer_dense_strides(self.sizes(), self.strides());
    spec.strides.assign(dense.begin(), dense.end());
  }
  return spec;
}

TensorSpec like(const at::Tensor& self, at::ScalarType dtype) {
  TensorSpec spec = like(self);
  spec.options = spec.options.dtype(dtype);
  spec.any_dtype = true;
  return spec;
}

TensorSpec resized(TensorSpec spec) {
  if (c10::multiply_integers(spec.sizes) == 0) spec.strides.clear();
  return spec;
}

TensorSpec contiguous_like(const at::Tensor& self) { return of(self.sizes(), self.options()); }
TensorSpec real_like(const at::Tensor& self) { return like(self, real_type(self.scalar_type())); }

TensorSpec floating_like(const at::Tensor& self) {
  const at::ScalarType dtype = floating_type(self.scalar_type());
  const bool promotes = at::isIntegralType(self.scalar_type(), /*includeBool=*/true);
  const auto computed = as_computed(self, promotes ? dtype : self.scalar_type());
  TensorSpec spec = elementwise({&*computed}, self.options().dtype(dtype));
  spec.any_dtype = true;
  return spec;
}

TensorSpec broadcast(const at::Tensor& a, const at::Tensor& b) {
  const at::ScalarType common = at::result_type(a, b);
  return broadcast_as(a, b, common, common);
}

TensorSpec broadcast(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype) {
  return broadcast_as(a, b, at::result_type(a, b), dtype);
}

std::optional<c10::SmallVector<int64_t, 6>> strides_from_copies(const at::TensorIteratorBase& iterator) {
  const std::optional<at::ScalarType> common = iterator.maybe_common_dtype();
  bool copies = false;
  for (int i = iterator.noutputs(); common && i < iterator.ntensors(); ++i)
    copies = copies || copied_densely(iterator.tensor_base(i), *common);
  if (!copies) [[likely]]
    return std::nullopt;
  c10::SmallVector<c10::MaybeOwned<at::Tensor>, 4> computed;
  for (int i = iterator.noutputs(); i < iterator.ntensors(); ++i)
    computed.push_back(as_computed(iterator.tensor(i), *common));
  c10::SmallVector<const at::Tensor*, 4> inputs;
  for (const auto& input : computed) inputs.push_back(&*input);
  return elementwise(inputs, {}).strides;
}

TensorSpec contiguous_broadcast(const at::Tensor& a, const at::Tensor& b) {
  return of(at::infer_size(a.sizes(), b.sizes()), a.options());
}

TensorSpec contiguous_broadcast(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
  return of(at::infer_size(at::infer_size(a.sizes(), b.sizes()), c.sizes()), a.options());
}

TensorSpec like_first(const at::Tensor& a, const at::Tensor& b) {
  const std::vector<int64_t> sizes = at::infer_size(a.sizes(), b.sizes());
  return a.sizes() == at::IntArrayRef(sizes) ? like(a) : of(sizes, a.options());
}

TensorSpec like_first(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
  const std::vector<int64_t> sizes = at::infer_size(at::infer_size(a.sizes(), b.sizes()), c.sizes());
  return a.sizes() == at::IntArrayRef(sizes) ? like(a) : of(sizes, a.options());
}

TensorSpec where(const at::Tensor& condition, const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(condition.scalar_type() == at::kBool || condition.scalar_type() == at::kByte,
              "where expected condition to be a boolean tensor, but got a tensor with dtype ", condition.scalar_type());
  const at::TensorOptions options = on_device(condition, on_device(a, b)).options();
  const at::ScalarType common = at::result_type(a, b);
  const auto mask = as_computed(condition, at::kBool), left = as_computed(a, common), right = as_computed(b, common);
  return elementwise({&*mask, &*left, &*right}, options.dtype(common));
}

TensorSpec complex_of(const at::Tensor& real, const at::Tensor& imaginary) {
  const auto has_complex_type = [](at::ScalarType dtype) {
    return dtype == at::kHalf || dtype == at::kFloat || dtype == at::kDouble;
  };
  const at::ScalarType dtype = real.scalar_type(), other = imaginary.scalar_type();
  TORCH_CHECK(has_complex_type(dtype) && has_complex_type(other),
              "Expected both inputs to be Half, Float or Double tensors but got ", dtype, " and ", other);
  TORCH_CHECK(dtype == other, "Expected object of scalar type ", dtype, " but got scalar type ", other,
              " for second argument");
  return broadcast(real, imaginary, c10::toComplexType(real.scalar_type()));
}

TensorSpec addr(const at::Tensor& self, const at::Tensor& vec1, const at::Tensor& vec2) {
  TORCH_CHECK(vec1.dim() == 1, "addr: Expected 1-D argument vec1, but got ", vec1.dim(), "-D");
  TORCH_CHECK(vec2.dim() == 1, "addr: Expected 1-D argument vec2, but got ", vec2.dim(), "-D");
  const at::ScalarType common =
      at::promoteTypes(at::promoteTypes(self.scalar_type(), vec1.scalar_type()), vec2.scalar_type());
  const at::Tensor expanded = self.expand({vec1.size(0), vec2.size(0)}), upright = vec1.unsqueeze(1);
  const auto matrix = as_computed(expanded, common), column = as_computed(upright, common);
  const auto row = as_computed(vec2, common);
  return elementwise({&*matrix, &*column, &*row}, self.options().dtype(common));
}

TensorSpecs<2> frexp(const at::Tensor& self) { return {like(self), like(self, at::kInt)}; }

TensorSpec scalar_like(const at::Tensor& self) { return of({}, self.options()); }
TensorSpec scalar(const at::Tensor& self, at::ScalarType dtype) { return of({}, self.options().dtype(dtype)); }

TensorSpec extremum(const at::Tensor& self, const char* function) {
  TORCH_CHECK(self.numel() > 0, function, ": Expected reduction dim to be specified for input.numel() == 0. ",
              "Specify the reduction dim with the 'dim' argument.");
  TensorSpec spec = scalar_like(self);
  spec.any_dtype = true;
  return spec;
}

TensorSpec nonzero_static(const at::Tensor& self, int64_t size) {
  TORCH_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  return of({size, self.dim()}, self.options().dtype(at::kLong));
}

TensorSpec trace(const at::Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  return scalar(self, sum_dtype(self));
}

at::ScalarType sum_dtype(const at::Tensor& self, std::optional<at::ScalarType> dtype) {
  if (dtype) return *dtype;
  return at::isIntegralType(self.scalar_type(), /*includeBool=*/true) ? at::kLong : self.scalar_type();
}

TensorSpec reduced(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim, at::ScalarType dtype) {
  const at::IntArrayRef dims = dim.has_value() ? *dim : at::IntArrayRef();
  const at::DimVector sizes =
      at::meta::get_reduction_shape(self, at::native::make_dim_vector(dims, self.dim()), keepdim);
  TensorSpec spec = of(sizes, self.options().dtype(dtype));
  spec.any_dtype = true;
  return spec;
}

TensorSpec variance(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()) || at::isComplexType(self.scalar_type()),
              "std and var only support floating point and complex dtypes");
  return reduced(self, dim, keepdim, real_type(self.scalar_type()));
}

TensorSpecs<2> variance_and_mean(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim) {
  return {reduced(self, dim, keepdim, real_type(self.scalar_type())), reduced(self, dim, keepdim, self.scalar_type())};
}

TensorSpecs<2> values_and_indices(const at::Tensor& self, int64_t dim, bool keepdim, const char* function) {
  at::native::zero_numel_check_dims(self, at::maybe_wrap_dim(dim, self.dim()), function);
  const TensorSpec values = reduced(self, at::OptionalIntArrayRef(dim), keepdim, self.scalar_type());
  TensorSpec indices = values;
  indices.options = indices.options.dtype(at::kLong);
  return {values, indices};
}

TensorSpecs<2> kthvalue(const at::Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  TensorSpecs<2> specs = values_and_indices(self, dim, keepdim, "kthvalue()");
  const int64_t wrapped = at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK(k >= 1 && k <= (self.dim() == 0 ? 1 : self.size(wrapped)),
              "kthvalue(): selected number k out of range for dimension ", wrapped);
  return specs;
}

TensorSpec along(const at::Tensor& self, int64_t dim) {
  at::maybe_wrap_dim(dim, self.dim());
  return contiguous_like(self);
}

TensorSpec flip(const at::Tensor& self, at::IntArrayRef dims) {
  at::dim_list_to_bitset(dims, self.dim());  // refuses what is out of range or named twice
  return like(self);
}

TensorSpec roll(const at::Tensor& self, at::IntArrayRef shifts, at::IntArrayRef dims) {
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  TORCH_CHECK(shifts.size() == dims.size() || (dims.empty() && shifts.size() == 1),
              "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
  if (self.numel() != 0)
    for (const int64_t dim : dims) at::maybe_wrap_dim(dim, self.dim(), /*wrap_scalar=*/false);
  return self.numel() == 0 ? like(self) : contiguous_like(self);
}

TensorSpec index_select(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
              "index_select(): Expected dtype int32 or int64 for index, but got ", index.scalar_type());
  TORCH_CHECK(self.dim() != 0 || index.numel() == 1, "index_select(): Index to scalar can have only 1 value, got ",
              index.numel(), " value(s)");
  TensorSpec spec = contiguous_like(self);
  if (self.dim() != 0) spec.sizes[static_cast<size_t>(at::maybe_wrap_dim(dim, self.dim()))] = index.numel();
  return spec;
}

TensorSpec take(const at::Tensor& self, const at::Tensor& index) {
  TORCH_CHECK(index.scalar_type() == at::kLong, "take(): Expected a long tensor for index, but got ",
              index.scalar_type());
  TORCH_CHECK_INDEX(self.numel() != 0 || index.numel() == 0, "take(): tried to take from an empty tensor");
  return of(index.sizes(), self.options());
}

TensorSpec search(const at::Tensor& positions_of, bool int32) {
  return of(positions_of.sizes(), positions_of.options().dtype(int32 ? at::kInt : at::kLong));
}

TensorSpec bucketize(const at::Tensor& self, const at::Tensor& boundaries, bool int32) {
  check_boundaries(boundaries);
  return search(self, int32);
}

TensorSpec bucketize(const at::Scalar&, const at::Tensor& boundaries, bool int32) {
  check_boundaries(boundaries);
  return place(boundaries, int32);
}

TensorSpec searchsorted(const at::Tensor& sorted_sequence, const at::Tensor& self, bool int32, bool right,
                        std::optional<std::string_view> side, const std::optional<at::Tensor>& sorter) {
  check_searchsorted(sorted_sequence, self.sizes(), right, side, sorter);
  return search(self, int32);
}

TensorSpec searchsorted(const at::Tensor& sorted_sequence, const at::Scalar&, bool int32, bool right,
                        std::optional<std::string_view> side, const std::optional<at::Tensor>& sorter) {
  check_searchsorted(sorted_sequence, {}, right, side, sorter);
  return place(sorted_sequence, int32);
}

TensorSpec bins(const at::Tensor& self, int64_t count, const at::Scalar& min, const at::Scalar& max) {
  TORCH_CHECK(count > 0, "torch.histogram(): bins must be > 0, but got ", count, " for dimension 0");
  TORCH_CHECK(min.toDouble() <= max.toDouble(), "torch.histc: max must be larger than min");
  return of({count}, self.options());
}

TensorSpec bins(const at::Tensor& self, at::IntArrayRef counts) {
  check_histogram_input(self, static_cast<int64_t>(counts.size()));
  for (size_t i = 0; i < counts.size(); ++i)
    TORCH_CHECK(counts[i] > 0, "torch.histogram(): bins must be > 0, but got ", counts[i], " for dimension ", i);
  return of(counts, self.options());
}

TensorSpec bins(const at::Tensor& self, at::TensorList edges) {
  TORCH_CHECK(self.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions");
  TORCH_CHECK(self.size(-1) == static_cast<int64_t>(edges.size()), "torch.histogramdd: expected ", self.size(-1),
              " sequences of bin edges for a ", self.size(-1), "-dimensional histogram but got ", edges.size());
  TensorSpec spec = of({}, self.options());
  for (size_t i = 0; i < edges.size(); ++i) {
    check_bin_edges(edges[i], i);
    spec.sizes.push_back(edges[i].numel() - 1);
  }
  return spec;
}

TensorSpecs<2> histogram(const at::Tensor& self, int64_t count) {
  TORCH_CHECK(count > 0, "torch.histogram(): bins must be > 0, but got ", count, " for dimension 0");
  return {of({count}, self.options()), of({count + 1}, self.options())};
}

TensorSpecs<2> histogram(const at::Tensor& self, const at::Tensor& edges) {
  check_bin_edges(edges, 0);
  return {of({edges.numel() - 1}, self.options()), of({edges.numel()}, self.options())};
}

TensorSpec segments(const at::Tensor& data, const std::optional<at::Tensor>& lengths,
                    const std::optional<at::Tensor>& offsets, int64_t axis) {
  TORCH_CHECK(lengths || offsets, "segment_reduce(): Either lengths or offsets must be defined.");
  axis = at::maybe_wrap_dim(axis, data.dim());
  const at::Tensor& bounds = lengths ? *lengths : *offsets;
  TORCH_CHECK(axis < bounds.dim(), "segment_reduce(): ", lengths ? "lengths" : "offsets",
              " must have a dimension for each one up to axis ", axis, ", but got sizes ", bounds.sizes());
  TORCH_CHECK(data.dim() >= bounds.dim(), "Expected data.dim() >= ", lengths ? "lengths" : "offsets",
              "_value.dim() to be true, but got false.");
  TORCH_CHECK_NOT_IMPLEMENTED(bounds.scalar_type() == at::kInt || bounds.scalar_type() == at::kLong,
                              "\"_segment_reduce_", lengths ? "lengths" : "offsets",
                              "_cpu_kernel1\" not implemented for '", at::toString(bounds.scalar_type()), "'");
  TensorSpec spec = contiguous_like(data);
  spec.sizes[static_cast<size_t>(axis)] = bounds.size(axis) - (lengths ? 0 : 1);
  return spec;
}

TensorSpec repeated(const at::Tensor& repeats, std::optional<int64_t> output_size) {
  const at::ScalarType dtype = repeats.scalar_type();
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  TORCH_CHECK(dtype == at::kLong || dtype == at::kInt, "repeats has to be Long or Int tensor");
  return of({repeats.numel() == 0 ? 0 : *output_size}, repeats.options());
}

TensorSpec narrowed(const at::Tensor& self, int64_t dim, int64_t start, int64_t length) {
  TORCH_CHECK(self.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  const at::IntArrayRef self_sizes = self.sizes();
  TORCH_CHECK(dim < static_cast<int64_t>(self_sizes.size()));  // PyTorch's own condition: it is the message
  TensorSpec spec = contiguous_like(self);
  int64_t& size = spec.sizes[static_cast<size_t>(at::maybe_wrap_dim(dim, self.dim()))];
  TORCH_CHECK_INDEX(-size <= start && start <= size, "start out of range (expected to be in range of [", -size, ", ",
                    size, "], but got ", start, ")");
  const int64_t first = start < 0 ? start + size : start;
  TORCH_CHECK(length >= 0 && first <= size - length, "start (", first, ") + length (", length,
              ") exceeds dimension size (", size, ").");
  size = length;
  return spec;
}

TensorSpec linear_combination(const at::Tensor& input, const at::Tensor& coefficients) {
  TORCH_CHECK(input.dim() > 0 && input.numel() > 0, "Empty tensor not supported");
  TensorSpec spec = contiguous_like(input);
  spec.sizes[0] = coefficients.size(0);
  return spec;
}

TensorSpec arange(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, const at::Tensor& out) {
  return AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "arange_cpu", [&] {
    return of({at::native::compute_arange_size<scalar_t>(start, end, step)}, out.options());
  });
}
TensorSpec range(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, const at::Tensor& out) {
  return of({closed_range_length(start, end, step)}, out.options());
}
TensorSpec steps(int64_t count, const at::Tensor& out) {
  TORCH_CHECK(count >= 0, "number of steps must be non-negative, but got ", count);
  return of({count}, out.options());
}
TensorSpec matrix(int64_t rows, int64_t columns, const at::Tensor& out) {
  TORCH_CHECK(rows >= 0, "n must be greater or equal to 0, got ", rows);
  TORCH_CHECK(columns >= 0, "m must be greater or equal to 0, got ", columns);
  return of({rows, columns}, out.options());
}

}  // namespace npu::aten::shapes
