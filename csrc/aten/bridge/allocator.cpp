#include "aten/bridge/allocator.h"

#include "aten/bridge/copy_bytes.h"
#include "aten/bridge/errors.h"
#include "aten/bridge/stream.h"
#include "runtime/context.h"
#include "runtime/device.h"

namespace npu::aten {
namespace {

using TorchStats = c10::CachingDeviceAllocator::DeviceStats;

// The profiler's thread-local listener is looked up first: it is absent in all but profiled runs.
void report_to_profiler(const Block& block, int64_t bytes) {
  if (!c10::memoryProfilingEnabled()) [[likely]]
    return;
  const AllocatorStats stats = primary_context(block.device).allocator().stats();
  c10::reportMemoryUsageToProfiler(block.address, bytes, static_cast<size_t>(stats.allocated_bytes[0].current),
                                   static_cast<size_t>(stats.reserved_bytes[0].current), device_of(block.device));
}

void report_out_of_memory(DeviceIndex device, size_t bytes) {
  if (!c10::memoryProfilingEnabled()) return;
  const AllocatorStats stats = primary_context(device).allocator().stats();
  c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(bytes), static_cast<size_t>(stats.allocated_bytes[0].current),
                                   static_cast<size_t>(stats.reserved_bytes[0].current), device_of(device));
}

void free_block(void* context) {
  if (npu::in_bad_fork()) return;  // the memory belongs to the parent
  auto* block = static_cast<Block*>(context);
  report_to_profiler(*block, -static_cast<int64_t>(block->bytes));
  primary_context(block->device).allocator().free(block);
}

Block* block_of(const c10::DataPtr& data) {
  return data.get_deleter() == &free_block ? static_cast<Block*>(data.get_context()) : nullptr;
}

void convert(c10::CachingAllocator::Stat& to, const StatValue& from) {
  to.current = from.current;
  to.peak = from.peak;
  to.allocated = from.allocated;
  to.freed = from.freed;
}

void convert(c10::CachingAllocator::StatArray& to, const StatArray<StatValue>& from) {
  for (size_t i = 0; i < from.size(); ++i) convert(to[i], from[i]);
}

}  // namespace

c10::DataPtr DeviceAllocator::allocate(size_t bytes) {
  const DeviceIndex device = npu::current_device();
  if (bytes == 0) return {nullptr, device_of(device)};
  try {
    Stream& stream = npu::current_stream(device);
    Block* block = stream.context().allocator().allocate(bytes, stream);
    report_to_profiler(*block, static_cast<int64_t>(block->bytes));
    return {block->address, block, &free_block, device_of(device)};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kOutOfMemory) report_out_of_memory(device, bytes);
    throw_translated(error);
  }
}

void DeviceAllocator::copy_data(void* destination, const void* source, size_t bytes) const {
  translate_errors([&] { copy_bytes(npu::current_stream(npu::current_device()), destination, source, bytes); });
}

bool DeviceAllocator::is_simple_data_ptr(const c10::DataPtr& data) const {
  const Block* block = block_of(data);
  return block != nullptr ? block->address == data.get() : data.get() == data.get_context();
}

bool DeviceAllocator::initialized() { return npu::is_initialized(); }

void DeviceAllocator::emptyCache(c10::MempoolId_t) {
  translate_errors([] {
    for (DeviceIndex device = 0; device < npu::device_count(); ++device) {
      if (!npu::has_primary_context(device)) continue;
      Context& context = primary_context(device);
      // Only segments whose tasks have completed can go. Task errors stay pending: this is not a synchronising call.
      for (const QueuePoint& point : context.queued_work())
        context.driver().wait(*point.queue, point.number, Driver::kForever);
      context.allocator().release_cached();
    }
  });
}

void DeviceAllocator::recordStream(const c10::DataPtr& data, c10::Stream stream) {
  Block* block = block_of(data);
  if (block == nullptr) return;  // empty, or memory that some other owner keeps alive
  translate_errors([&] { primary_context(block->device).allocator().record_stream(block, unwrap(stream)); });
}

TorchStats DeviceAllocator::getDeviceStats(c10::DeviceIndex device) {
  TorchStats result;
  if (!npu::has_primary_context(device)) return result;
  const CachingAllocator& allocator = primary_context(device).allocator();
  const AllocatorStats stats = allocator.stats();
  convert(result.allocation, stats.allocation);
  convert(result.segment, stats.segment);
  convert(result.active, stats.active);
  convert(result.inactive_split, stats.inactive_split);
  convert(result.allocated_bytes, stats.allocated_bytes);
  convert(result.reserved_bytes, stats.reserved_bytes);
  convert(result.active_bytes, stats.active_bytes);
  convert(result.inactive_split_bytes, stats.inactive_split_bytes);
  convert(result.requested_bytes, stats.requested_bytes);
  result.num_alloc_retries = stats.alloc_retries;
  result.num_ooms = stats.ooms;
  result.num_sync_all_streams = stats.sync_all_streams;
  result.num_device_alloc = stats.device_allocs;
  result.num_device_free = stats.device_frees;
  convert(result.oversize_allocations, stats.oversize_allocations);
  convert(result.oversize_segments, stats.oversize_segments);
  result.max_split_size = static_cast<int64_t>(allocator.options().max_split_bytes);  // -1 = no limit
  return result;
}

void DeviceAllocator::resetAccumulatedStats(c10::DeviceIndex device) {
  if (npu::has_primary_context(device)) primary_context(device).allocator().reset_accumulated_stats();
}

void DeviceAllocator::resetPeakStats(c10::DeviceIndex device) {
  if (npu::has_primary_context(device)) primary_context(device).allocator().reset_peak_stats();
}

std::pair<size_t, size_t> DeviceAllocator::getMemoryInfo(c10::DeviceIndex device) {
  return translate_errors([&] {
    const Context& context = primary_context(device);
    const MemoryInfo info = context.driver().memory_info(context.ordinal());
    return std::pair(info.free_bytes, info.total_bytes);
  });
}

DeviceAllocator& device_allocator() {
  static auto* allocator = new DeviceAllocator;  // leaked: tensors may outlive main()
  return *allocator;
}

REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &device_allocator())

void resize_storage(c10::StorageImpl& storage, size_t bytes) {
  TORCH_CHECK(storage.resizable(), "cannot resize a storage of ", storage.nbytes(),
              " bytes whose memory belongs to someone else (from_blob, shared memory)");
  const DeviceGuard guard(storage.device().index());
  c10::DataPtr data = device_allocator().allocate(bytes);
  translate_errors([&] {
    Stream& stream = npu::current_stream(storage.device().index());
    copy_bytes(stream, data.mutable_get(), storage.data(), std::min(bytes, storage.nbytes()));
    device_allocator().recordStream(storage.data_ptr(), wrap(stream));  // the old memory is freed below
  });
  storage.set_data_ptr_noswap(std::move(data));
  storage.set_nbytes(bytes);
}

}  // namespace npu::aten
