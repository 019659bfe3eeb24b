#include "aten/bridge/host_allocator.h"

#include "aten/bridge/errors.h"
#include "aten/bridge/stream.h"
#include "runtime/device.h"
#include "runtime/driver/driver.h"
#include "runtime/event.h"

namespace npu::aten {
namespace {

using PinnedEvent = std::unique_ptr<Event>;
using PinnedBlock = at::HostBlock<c10::Stream>;

// The parts of PyTorch's template that depend on the device.
struct PinnedAllocatorImpl final : at::CachingHostAllocatorImpl<c10::Stream, PinnedEvent> {
 private:
  void allocate_host_memory(size_t bytes, void** address) override {
    *address = translate_errors([&] { return npu::driver().allocate_host(bytes); });
    if (*address == nullptr)
      throw c10::OutOfMemoryError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
                                  "cannot pin " + c10::CachingAllocator::format_size(bytes) +
                                      " of host memory: the machine refuses; free pinned tensors or call "
                                      "torch.accelerator.empty_host_cache()");
  }

  void free_block(PinnedBlock* block) override { npu::driver().free_host(block->ptr_); }

  void record_stream(std::optional<std::vector<PinnedEvent>>& events, c10::Stream stream) override {
    auto event = std::make_unique<Event>(/*timing=*/false);
    event->record(unwrap(stream));
    events->push_back(std::move(event));
  }

  bool query_event(PinnedEvent& event) override { return event->query(); }

  c10::Stream get_current_stream() const override { return wrap(npu::current_stream(npu::current_device())); }

  bool stream_is_capturing(c10::Stream) const override { return false; }
};

void free_pinned(void* block);

struct PinnedAllocator final : at::CachingHostAllocatorInterface<PinnedAllocatorImpl, free_pinned> {
  void copy_data(void* destination, const void* source, size_t bytes) const override {
    default_copy_data(destination, source, bytes);
  }
};

PinnedAllocator& instance() {
  static auto* allocator = new PinnedAllocator;  // leaked: tensors may outlive main()
  return *allocator;
}

void free_pinned(void* block) {
  if (!npu::in_bad_fork()) instance().free(block);
}

}  // namespace

at::HostAllocator& pinned_allocator() { return instance(); }

bool is_pinned(const void* address) noexcept {
  if (!npu::is_initialized()) return false;
  try {
    return npu::driver().locate(address).kind == MemoryLocation::Kind::kPinned;
  } catch (const Error&) {
    return false;
  }
}

REGISTER_HOST_ALLOCATOR(at::kPrivateUse1, &instance())

}  // namespace npu::aten
