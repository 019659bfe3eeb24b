#include "aten/bridge/generator.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <deque>

#include "aten/bridge/errors.h"
#include "aten/bridge/stream.h"

namespace npu::aten {
namespace {

constexpr int64_t kStateBytes = sizeof(kernels::RandomState);
static_assert(kStateBytes == 16);

std::deque<at::Generator> make_default_generators() {
  std::deque<at::Generator> generators;
  const int devices = translate_errors([] { return npu::device_count(); });
  for (int device = 0; device < devices; ++device) {
    generators.push_back(at::make_generator<GeneratorImpl>(static_cast<c10::DeviceIndex>(device)));
    generators.back().seed();
  }
  return generators;
}

}  // namespace

GeneratorImpl::GeneratorImpl(c10::DeviceIndex device)
    : c10::GeneratorImpl(device_of(device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {
  set_current_seed(c10::default_rng_seed_val);
}

kernels::RandomState GeneratorImpl::reserve() {
  return {state_->seed, state_->offset.fetch_add(kernels::kRandomStep, std::memory_order_relaxed)};
}

void GeneratorImpl::move_to(const kernels::RandomState& place) {
  state_->seed = place.seed;
  state_->offset = place.offset;
}

void GeneratorImpl::set_current_seed(uint64_t seed) { move_to({seed, 0}); }

uint64_t GeneratorImpl::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom(/*is_cuda=*/true));
  return current_seed();
}

void GeneratorImpl::set_state(const c10::TensorImpl& state) {
  TORCH_CHECK(state.layout() == c10::kStrided && state.device_type() == c10::DeviceType::CPU &&
                  state.dtype() == caffe2::TypeMeta::Make<uint8_t>() && state.is_contiguous() &&
                  state.numel() == kStateBytes,
              "the state of an npu generator is a contiguous CPU tensor of ", kStateBytes, " uint8 (seed, offset), as ",
              "get_state() returns it; got ", state.numel(), " elements of ", state.dtype().name(), " on ",
              state.device().str());
  kernels::RandomState place;
  std::memcpy(&place, state.data(), kStateBytes);
  move_to(place);
}

c10::intrusive_ptr<c10::TensorImpl> GeneratorImpl::get_state() const {
  at::Tensor state = at::empty({kStateBytes}, at::TensorOptions(at::kCPU).dtype(at::kByte));
  const kernels::RandomState now = place();
  std::memcpy(state.mutable_data_ptr(), &now, kStateBytes);
  return state.getIntrusivePtr();
}

void GeneratorImpl::graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& state) {
  auto other = c10::dynamic_intrusive_pointer_cast<GeneratorImpl>(state);
  TORCH_CHECK(other, "expected the state of an npu generator, got one of ", state->device().str());
  state_ = other->state_;
}

c10::intrusive_ptr<c10::GeneratorImpl> GeneratorImpl::graphsafe_get_state() const {
  auto other = c10::make_intrusive<GeneratorImpl>(device_.index());
  other->state_ = state_;
  return other;
}

GeneratorImpl* GeneratorImpl::clone_impl() const {
  auto* clone = new GeneratorImpl(device_.index());
  clone->move_to(place());
  return clone;
}

const at::Generator& default_generator(c10::DeviceIndex device) {
  static auto* generators = new std::deque<at::Generator>(make_default_generators());  // leaked, as the devices are
  if (device < 0) device = static_cast<c10::DeviceIndex>(npu::current_device());
  translate_errors([&] { npu::check_device(device); });
  return (*generators)[static_cast<size_t>(device)];
}

}  // namespace npu::aten
