// Random state of a device: a seed and an offset, 16 bytes.
//
// An operator reserves its place in the sequence when it is submitted; its kernel draws from a counter-based generator
// keyed by that place. So results depend neither on timing nor on threads.
#pragma once

#include <ATen/core/Generator.h>

#include <atomic>
#include <memory>

#include "kernels/random.h"
#include "runtime/export.h"

namespace npu::aten {

class NPU_API GeneratorImpl final : public c10::GeneratorImpl {
 public:
  explicit GeneratorImpl(c10::DeviceIndex device);

  // The next place in the sequence, and moves on. The caller holds mutex_.
  kernels::RandomState reserve();

  void set_current_seed(uint64_t seed) override;  // and offset 0
  uint64_t current_seed() const override { return state_->seed; }
  uint64_t seed() override;  // a new one from the system's entropy
  void set_offset(uint64_t offset) override { state_->offset = offset; }
  uint64_t get_offset() const override { return state_->offset; }
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;  // 16 bytes on the CPU: seed, offset
  // From now on both generators share one state, the other's: what either reserves or sets moves both. A graph keeps the
  // state of the generators it uses this way.
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& state) override;
  // Another generator that shares this one's state.
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override;

  static c10::DeviceType device_type() { return c10::DeviceType::PrivateUse1; }

 private:
  // Generators that share it have a mutex each, so a place is reserved in one step.
  struct State {
    std::atomic<uint64_t> seed{0};
    std::atomic<uint64_t> offset{0};
  };

  GeneratorImpl* clone_impl() const override;
  kernels::RandomState place() const { return {state_->seed, state_->offset}; }
  void move_to(const kernels::RandomState& place);

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Of a device (-1 = the current one); seeded from the system's entropy. Does not initialise the device.
NPU_API const at::Generator& default_generator(c10::DeviceIndex device = -1);

}  // namespace npu::aten
