#include "aten/ops/transfer.h"

#include <ATen/EmptyTensor.h>

#include <cstring>

#include "aten/bridge/errors.h"
#include "aten/bridge/host_allocator.h"
#include "aten/bridge/stream.h"
#include "aten/bridge/sync_debug_mode.h"
#include "kernels/copy.h"
#include "runtime/event.h"

namespace npu::aten {
namespace {

using kernels::CopyArguments;

// A copy that overlaps with the host's work has to leave the host thread alone; a small one, or one that the host waits
// for, is done soonest by whoever is at hand.
constexpr size_t kSmallBytes = 64 << 10;

void launch(Stream& stream, const TaskInfo& prompt, const TaskInfo& async, const CopyArguments& copy, bool wait) {
  // A host that waits may as well copy itself when the stream is idle: waking a worker costs more than it saves.
  constexpr uint32_t kAnyoneNs = 1;
  const auto cost_ns = wait ? kAnyoneNs : static_cast<uint32_t>(std::min<size_t>(50 + copy.bytes / 8, UINT32_MAX));
  stream.launch(wait || copy.bytes <= kSmallBytes ? prompt : async, copy, cost_ns);
}

void launch_in(Stream& stream, const CopyArguments& copy, bool wait) {
  launch(stream, kernels::kCopyIn, kernels::kCopyInAsync, copy, wait);
}

// Between devices: the source's DMA engine writes into the other device's memory.
void run_peer_copy(const TaskContext& context, const void* arguments) {
  const auto& copy = *static_cast<const CopyArguments*>(arguments);
  kernels::copy_bytes(npu::driver().translate(copy.to), context.translate(copy.from), copy.bytes);
}

const TaskInfo kPeerCopy{.name = "aten::copy_",
                         .run = run_peer_copy,
                         .engines = kDmaOutEngine,
                         .flags = 0,
                         .visit = kernels::kCopyOut.visit};

// Blocks until what is queued so far is done. The wait may be ended by an exception (Ctrl-C) while the copy is still
// queued; host memory it uses is then never freed.
void finish(Stream& stream, const at::Tensor& host) {
  try {
    Event done(/*timing=*/false);
    done.record(stream);
    done.synchronize();
  } catch (...) {
    if (!stream.query()) static_cast<void>(at::Tensor(host).unsafeReleaseTensorImpl());
    throw;
  }
}

// Keeps a pinned block from reuse until `stream` is done with it. The tensor may lie anywhere in the block and need not
// own it (a NumPy array may), so the block is found by address.
void hold_pinned(const at::Tensor& host, Stream& stream) {
  const c10::DataPtr& data = host.storage().data_ptr();
  if (pinned_allocator().record_event(data.get(), data.get_context(), wrap(stream))) return;
  const MemoryLocation block = npu::driver().locate(host.const_data_ptr());
  pinned_allocator().record_event(const_cast<void*>(block.base), nullptr, wrap(stream));
}

// A copy of the source that travels in the queue itself.
struct StagedCopy {
  static constexpr size_t kMaxBytes = 4096;
  void* destination;
  size_t bytes;
  std::byte data[kMaxBytes];
};

void visit_staged(void* arguments, OperandVisitor& visitor) {
  auto& copy = *static_cast<StagedCopy*>(arguments);
  const auto size = static_cast<int64_t>(copy.bytes);
  visitor.visit({.name = "self",
                 .access = Operand::Access::kWrite,
                 .address = &copy.destination,
                 .dtype = "uint8",
                 .rank = 1,
                 .sizes = &size,
                 .bytes = copy.bytes});
}

constexpr TaskInfo kStagedCopy{.name = "aten::copy_",
                               .run =
                                   [](const TaskContext& context, const void* arguments) {
                                     const auto& copy = *static_cast<const StagedCopy*>(arguments);
                                     std::memcpy(context.translate(copy.destination), copy.data, copy.bytes);
                                   },
                               .engines = kDmaInEngine,
                               .flags = kInlineable,
                               .visit = visit_staged};

void launch_staged(Stream& stream, void* destination, const void* source, size_t bytes) {
  StagedCopy copy;  // only the bytes in use are written and queued
  copy.destination = destination;
  copy.bytes = bytes;
  std::memcpy(copy.data, source, bytes);
  stream.launch_bytes({kStagedCopy, &copy, offsetof(StagedCopy, data) + bytes, static_cast<uint32_t>(50 + bytes / 8)});
}

}  // namespace

void copy_to_device(const at::Tensor& device, const at::Tensor& host, size_t bytes, bool wait) {
  translate_errors([&] {
    Stream& stream = current_stream(device.get_device());
    void* destination = device.mutable_data_ptr();
    const void* source = host.const_data_ptr();
    if (wait) {
      const SynchronizingCall call("blocking copy to the device");
      launch_in(stream, {destination, source, bytes}, wait);
      finish(stream, host);
    } else if (bytes <= StagedCopy::kMaxBytes) {
      launch_staged(stream, destination, source, bytes);
    } else if (is_pinned(source)) {
      launch_in(stream, {destination, source, bytes}, wait);
      hold_pinned(host, stream);
    } else {
      const at::Tensor staged = at::detail::empty_cpu({static_cast<int64_t>(bytes)}, at::kByte, /*pin_memory=*/true);
      std::memcpy(staged.mutable_data_ptr(), source, bytes);
      launch_in(stream, {destination, staged.const_data_ptr(), bytes}, wait);
      hold_pinned(staged, stream);
    }
  });
}

void copy_to_host(const at::Tensor& host, const at::Tensor& device, size_t bytes, bool wait) {
  translate_errors([&] {
    Stream& stream = current_stream(device.get_device());
    const bool pinned = is_pinned(host.const_data_ptr());
    const CopyArguments copy{host.mutable_data_ptr(), device.const_data_ptr(), bytes};
    if (wait || !pinned) {
      const SynchronizingCall call(pinned ? "blocking copy to pinned host memory" : "copy to pageable host memory");
      launch(stream, kernels::kCopyOut, kernels::kCopyOutAsync, copy, /*wait=*/true);
      finish(stream, host);
    } else {
      launch(stream, kernels::kCopyOut, kernels::kCopyOutAsync, copy, /*wait=*/false);
      hold_pinned(host, stream);
    }
  });
}

void copy_to_peer(const at::Tensor& destination, const at::Tensor& source, size_t bytes) {
  translate_errors([&] {
    Stream& from = current_stream(source.get_device());
    Stream& to = current_stream(destination.get_device());
    Event ready(/*timing=*/false);
    ready.record(to);
    from.wait(ready);
    from.launch(kPeerCopy, CopyArguments{destination.mutable_data_ptr(), source.const_data_ptr(), bytes});
    Event copied(/*timing=*/false);
    copied.record(from);
    to.wait(copied);
  });
}

void wait_for_copies(const at::Tensor& device) {
  const WaitCause cause("blocking copy to the device");
  translate_errors([&] { finish(current_stream(device.get_device()), /*host=*/{}); });
}

}  // namespace npu::aten
