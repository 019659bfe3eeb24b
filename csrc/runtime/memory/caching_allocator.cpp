#include "runtime/memory/caching_allocator.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <forward_list>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/blocking.h"
#include "runtime/context.h"
#include "runtime/fault_report.h"
#include "runtime/log.h"
#include "runtime/memory/block_pool.h"
#include "runtime/memory/segment_counters.h"
#include "runtime/observer.h"
#include "runtime/status.h"

namespace npu {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr int kDrainRounds = 64;

StatType kind_of_block(size_t bytes) {
  return bytes <= kLargestSmallBlock ? StatType::kSmallPool : StatType::kLargePool;
}

class SeekerOfRoom {
 public:
  explicit SeekerOfRoom(std::atomic<int>& seekers) : seekers_(seekers) { ++seekers_; }
  ~SeekerOfRoom() { --seekers_; }
  SeekerOfRoom(const SeekerOfRoom&) = delete;
  SeekerOfRoom& operator=(const SeekerOfRoom&) = delete;

 private:
  std::atomic<int>& seekers_;
};

std::string for_people(size_t bytes) {
  const double mib = static_cast<double>(bytes) / static_cast<double>(kMiB);
  char text[48];
  std::snprintf(text, sizeof(text), mib >= 1024 ? "%.2f GiB" : "%.2f MiB", mib >= 1024 ? mib / 1024 : mib);
  return text;
}

}  // namespace

class CachingAllocator::Impl {
 public:
  Impl(Driver& driver, DeviceIndex device, DeviceIndex ordinal, Context* context, bool deterministic,
       const AllocatorOptions& options);
  ~Impl();

  Block* allocate(size_t requested, Queue& queue, StreamId stream);
  void free(CachedBlock& block) noexcept;
  CachedBlock* find(const void* address);
  BlockHistory history(const void* address) noexcept;
  void release_cached();
  void set_options(const AllocatorOptions& options);
  const AllocatorOptions& options() const { return *options_.load(std::memory_order_acquire); }
  void set_memory_fraction(double fraction);
  double memory_fraction() const { return fraction_.load(std::memory_order_relaxed); }
  double allowed_bytes() const {
    return memory_fraction() * static_cast<double>(driver_.memory_info(ordinal_).total_bytes);
  }
  AllocatorStats stats();
  std::vector<SegmentSnapshot> snapshot();
  void reset_peak_stats();
  void reset_accumulated_stats();

 private:
  using Taken = BlockPool::Taken;
  using EventCount = std::atomic<int64_t>;
  static constexpr size_t kBuckets = 64;
  struct PoolNode {
    BlockPool pool;
    PoolNode* next;
  };

  // Pools are found without a lock: they are only ever added, at the head of their bucket.
  BlockPool& pool_of(Queue& queue);
  BlockPool& add_pool(std::atomic<PoolNode*>& bucket, Queue& queue);
  static BlockPool* find_pool(PoolNode* head, const Queue& queue);
  template <class Visit>
  void for_each_pool(const Visit& visit);

  Taken take_cached(BlockPool& pool, const Request& request);
  Taken take_from_finished_streams(BlockPool& pool, const Request& request);
  Taken grow(BlockPool& pool, const Request& request);
  Taken make_room(BlockPool& pool, const Request& request);
  void drain_streams();
  void collect_garbage(double threshold);
  void give_back(const std::vector<Segment>& segments);
  [[noreturn]] void throw_out_of_memory(size_t requested);

  struct Sums {
    Amounts current{}, increases{};
  };
  Sums count_pools() REQUIRES(stats_mutex_);  // raises the peaks as well
  void deal_allowances(const Amounts& current, const BlockPool* risen) REQUIRES(stats_mutex_);
  void note_peak(const BlockPool& risen);

  Driver& driver_;
  const DeviceIndex device_;
  const DeviceIndex ordinal_;
  Context* const context_;  // null in tests
  const bool deterministic_;
  std::array<std::atomic<PoolNode*>, kBuckets> buckets_{};
  EventCount alloc_retries_{0}, ooms_{0}, sync_all_streams_{0}, device_allocs_{0}, device_frees_{0};
  std::atomic<double> fraction_{1.0};
  std::atomic<const AllocatorOptions*> options_{nullptr};  // the latest of all_options_
  std::atomic<int> seekers_of_room_{0};                    // threads that drain the streams to find memory
  Mutex release_mutex_;  // segments on their way back to the driver; taken before all others
  Mutex growth_mutex_;   // "fits the fraction" and "is reserved" are one step
  SegmentCounters segments_ GUARDED_BY(growth_mutex_);
  // All there ever were: another thread may be inside an allocation that uses the ones before.
  std::forward_list<AllocatorOptions> all_options_ GUARDED_BY(growth_mutex_);
  Mutex stats_mutex_;  // pools are added, summed up and given allowances; taken before the pools' own
  Amounts peaks_ GUARDED_BY(stats_mutex_){};
  Sums hidden_ GUARDED_BY(stats_mutex_);  // as of the latest reset of accumulated values
};

CachingAllocator::Impl::Impl(Driver& driver, DeviceIndex device, DeviceIndex ordinal, Context* context,
                             bool deterministic, const AllocatorOptions& options)
    : driver_(driver), device_(device), ordinal_(ordinal), context_(context), deterministic_(deterministic) {
  set_options(options);
  add_fault_blocks({[](const void* owner, uintptr_t address) noexcept {
                      auto* const impl = static_cast<Impl*>(const_cast<void*>(owner));
                      return impl->history(reinterpret_cast<const void*>(address));
                    },
                    this});
}

CachingAllocator::Impl::~Impl() {
  remove_fault_blocks(this);
  for_each_pool([this](BlockPool& pool) {
    for (const Segment& segment : pool.segments()) driver_.free(ordinal_, segment.base);
  });
  for (std::atomic<PoolNode*>& bucket : buckets_)
    for (PoolNode* node = bucket.load(); node != nullptr;) delete std::exchange(node, node->next);
}

Block* CachingAllocator::Impl::allocate(size_t requested, Queue& queue, StreamId stream) {
  if (context_ != nullptr) context_->check_usable();
  if (requested > SIZE_MAX / 2) throw_out_of_memory(requested);
  const AllocatorOptions& current = options();
  const size_t bytes = block_bytes(requested, current);
  const Request request{bytes, requested, kind_of_block(bytes), stream, &current};
  BlockPool& pool = pool_of(queue);
  Taken taken = take_cached(pool, request);
  if (taken.block == nullptr && current.garbage_collection_threshold > 0) [[unlikely]]
    collect_garbage(current.garbage_collection_threshold);
  if (taken.block == nullptr) [[unlikely]]
    taken = grow(pool, request);
  if (taken.block == nullptr) [[unlikely]]
    taken = make_room(pool, request);
  if (taken.block == nullptr) [[unlikely]]
    throw_out_of_memory(requested);
  if (taken.is_above_allowance) [[unlikely]]
    note_peak(pool);
  observe([&](Observer& o) { o.on_allocate(device_, stream, taken.block->address, taken.block->bytes); });
  return taken.block;
}

void CachingAllocator::Impl::free(CachedBlock& block) noexcept {
  if (block.state.load(std::memory_order_relaxed) != CachedBlock::State::kLive) [[unlikely]] {
    log(LogLevel::kError, "a block of device memory was freed twice; the second time had no effect");
    return;
  }
  observe([&](Observer& o) { o.on_free(device_, block.stream, block.address, block.bytes); });
  block.pool->push(block);
}

BlockPool* CachingAllocator::Impl::find_pool(PoolNode* head, const Queue& queue) {
  for (PoolNode* node = head; node != nullptr; node = node->next)
    if (&node->pool.queue() == &queue) return &node->pool;
  return nullptr;
}

BlockPool& CachingAllocator::Impl::pool_of(Queue& queue) {
  const uint64_t hash = (reinterpret_cast<uintptr_t>(&queue) >> 6) * 0x9E3779B97F4A7C15u;
  std::atomic<PoolNode*>& bucket = buckets_[hash >> 58];
  static_assert(kBuckets == 1 << (64 - 58));
  BlockPool* const pool = find_pool(bucket.load(std::memory_order_acquire), queue);
  return pool != nullptr ? *pool : add_pool(bucket, queue);
}

BlockPool& CachingAllocator::Impl::add_pool(std::atomic<PoolNode*>& bucket, Queue& queue) {
  MutexLock lock(stats_mutex_);
  PoolNode* const head = bucket.load(std::memory_order_relaxed);
  if (BlockPool* const pool = find_pool(head, queue)) return *pool;  // another thread was first
  PoolNode* const node = new PoolNode{{queue, device_}, head};
  bucket.store(node, std::memory_order_release);  // pairs with the acquire loads of readers
  return node->pool;
}

template <class Visit>
void CachingAllocator::Impl::for_each_pool(const Visit& visit) {
  for (std::atomic<PoolNode*>& bucket : buckets_)
    for (PoolNode* node = bucket.load(std::memory_order_acquire); node != nullptr; node = node->next) visit(node->pool);
}

BlockPool::Taken CachingAllocator::Impl::take_cached(BlockPool& pool, const Request& request) {
  const bool scarce = seekers_of_room_.load(std::memory_order_relaxed) != 0;
  const Taken taken = pool.take(request, scarce ? BlockPool::Reuse::kFinished : BlockPool::Reuse::kInStreamOrder);
  return taken.block != nullptr || deterministic_ ? taken : take_from_finished_streams(pool, request);
}

BlockPool::Taken CachingAllocator::Impl::take_from_finished_streams(BlockPool& pool, const Request& request) {
  Segment segment;
  for_each_pool([&](BlockPool& other) {
    if (segment.bytes == 0 && &other != &pool) segment = other.remove_finished_segment(request);
  });
  return segment.bytes == 0 ? Taken{} : pool.take_from(segment, request);
}

BlockPool::Taken CachingAllocator::Impl::grow(BlockPool& pool, const Request& request) {
  Segment segment{nullptr, segment_bytes(request.bytes, *request.options), request.kind};
  segment.is_oversize = segment.bytes >= request.options->max_split_bytes;
  {
    MutexLock lock(growth_mutex_);
    const int64_t reserved_bytes = segments_.reserved_bytes() + static_cast<int64_t>(segment.bytes);
    if (static_cast<double>(reserved_bytes) > allowed_bytes()) return {};
    segment.base = driver_.allocate(ordinal_, segment.bytes);
    if (segment.base == nullptr) return {};
    segments_.add(segment.kind, segment.bytes, segment.is_oversize);
  }
  device_allocs_.fetch_add(1, std::memory_order_relaxed);
  return pool.take_from(segment, request);
}

BlockPool::Taken CachingAllocator::Impl::make_room(BlockPool& pool, const Request& request) {
  if (static_cast<double>(request.bytes) > allowed_bytes()) return {};
  alloc_retries_.fetch_add(1, std::memory_order_relaxed);
  release_cached();
  if (const Taken taken = grow(pool, request); taken.block != nullptr) return taken;
  // Without a lock other threads may take what a round frees. They are slowed down: until this is over they get finished
  // memory only, and while what is live leaves room, another round can win.
  const SeekerOfRoom seeker(seekers_of_room_);
  for (int round = 0; round < kDrainRounds; ++round) {
    drain_streams();
    if (const Taken taken = pool.take(request, BlockPool::Reuse::kInStreamOrder); taken.block != nullptr) return taken;
    release_cached();
    if (const Taken taken = grow(pool, request); taken.block != nullptr) return taken;
    const auto live_bytes = static_cast<size_t>(stats().allocated_bytes[0].current);
    if (static_cast<double>(live_bytes + request.bytes) > allowed_bytes()) break;
  }
  return {};
}

void CachingAllocator::Impl::drain_streams() {
  sync_all_streams_.fetch_add(1, std::memory_order_relaxed);
  std::vector<QueuePoint> points;
  if (context_ != nullptr) points = context_->queued_work();
  for_each_pool([&](BlockPool& pool) {
    points.push_back({&pool.queue(), pool.queue().submitted()});
    const std::vector<QueuePoint> pending = pool.pending();
    points.insert(points.end(), pending.begin(), pending.end());
  });
  const WaitCause cause("memory is full");
  for (const QueuePoint& point : points) driver_.wait(*point.queue, point.number, Driver::kForever);
}

void CachingAllocator::Impl::release_cached() {
  // Whoever looks for room must not miss segments that another thread is giving back just now: that takes milliseconds.
  MutexLock lock(release_mutex_);
  for_each_pool([this](BlockPool& pool) { give_back(pool.remove_finished_segments()); });
}

// Until what is reserved is at or below the threshold: what has been free for longest goes first.
void CachingAllocator::Impl::collect_garbage(double threshold) {
  double excess = -threshold * allowed_bytes();
  {
    MutexLock lock(growth_mutex_);
    excess += static_cast<double>(segments_.reserved_bytes());
  }
  if (excess <= 0) return;
  struct Candidate {
    BlockPool* pool;
    BlockPool::Idle idle;
  };
  MutexLock lock(release_mutex_);
  std::vector<Candidate> candidates;
  for_each_pool([&](BlockPool& pool) {
    for (const BlockPool::Idle& idle : pool.finished_segments()) candidates.push_back({&pool, idle});
  });
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.idle.age > b.idle.age; });
  for (const Candidate& candidate : candidates) {
    if (excess <= 0) return;
    const Segment segment = candidate.pool->remove_finished_segment(candidate.idle.segment.base);
    if (segment.bytes == 0) continue;  // in use again
    give_back({segment});
    excess -= static_cast<double>(segment.bytes);
  }
}

void CachingAllocator::Impl::give_back(const std::vector<Segment>& segments) {
  for (const Segment& segment : segments) {
    driver_.free(ordinal_, segment.base);
    device_frees_.fetch_add(1, std::memory_order_relaxed);
    MutexLock lock(growth_mutex_);
    segments_.remove(segment.kind, segment.bytes, segment.is_oversize);
  }
}

void CachingAllocator::Impl::throw_out_of_memory(size_t requested) {
  ooms_.fetch_add(1, std::memory_order_relaxed);
  size_t largest = 0;
  for_each_pool([&](BlockPool& pool) { largest = std::max(largest, pool.largest_free_bytes()); });
  const AllocatorStats now = stats();
  const MemoryInfo info = driver_.memory_info(ordinal_);
  const bool limited = memory_fraction() < 1;
  const std::string limit = limited ? detail::concat(" This process may use ", memory_fraction(), " of it.") : "";
  NPU_THROW(kOutOfMemory, "out of memory on npu:", device_, ": tried to allocate ", for_people(requested), " (",
            requested, " bytes). The device has ", for_people(info.total_bytes), " capacity, of which ",
            for_people(info.free_bytes), " is free.", limit, " The caching allocator has reserved ",
            for_people(static_cast<size_t>(now.reserved_bytes[0].current)), ", of which ",
            for_people(static_cast<size_t>(now.allocated_bytes[0].current)),
            " is allocated; the largest free cached block has ", for_people(largest),
            ". Free tensors that are no longer needed, make batches smaller, or give ",
            limited ? "this process a larger fraction." : "the simulated device more memory with NPU_SIM_MEMORY.");
}

CachedBlock* CachingAllocator::Impl::find(const void* address) {
  CachedBlock* found = nullptr;
  for_each_pool([&](BlockPool& pool) {
    if (found == nullptr) found = pool.find(address);
  });
  return found;
}

BlockHistory CachingAllocator::Impl::history(const void* address) noexcept {
  BlockHistory found;
  for_each_pool([&](BlockPool& pool) {
    if (found.bytes == 0) found = pool.history(address);
  });
  return found;
}

void CachingAllocator::Impl::set_options(const AllocatorOptions& options) {
  MutexLock lock(growth_mutex_);
  all_options_.push_front(options);
  options_.store(&all_options_.front(), std::memory_order_release);
}

std::vector<SegmentSnapshot> CachingAllocator::Impl::snapshot() {
  std::vector<SegmentSnapshot> segments;
  for_each_pool([&segments](BlockPool& pool) { pool.add_to(segments); });
  std::sort(segments.begin(), segments.end(),
            [](const SegmentSnapshot& a, const SegmentSnapshot& b) { return a.address < b.address; });
  return segments;
}

void CachingAllocator::Impl::set_memory_fraction(double fraction) {
  NPU_CHECK(fraction > 0 && fraction <= 1, kInvalidArgument, "memory fraction ", fraction, " of npu:", device_,
            ": it must be above 0 and at most 1.");
  fraction_.store(fraction, std::memory_order_relaxed);
}

CachingAllocator::Impl::Sums CachingAllocator::Impl::count_pools() {
  Sums sums;
  for_each_pool([&](BlockPool& pool) { pool.count(sums.current, sums.increases); });
  combine(peaks_, sums.current, [](int64_t peak, int64_t current) { return std::max(peak, current); });
  return sums;
}

// Half of what is left below the peaks goes to the pool that has risen, the other half is shared out.
void CachingAllocator::Impl::deal_allowances(const Amounts& current, const BlockPool* risen) {
  int64_t pools = 0;
  for_each_pool([&pools](BlockPool&) { ++pools; });
  if (pools == 0) return;
  Amounts share = peaks_, half = peaks_;
  combine(half, current, [](int64_t peak, int64_t now) { return (peak - now) / 2; });
  combine(share, half, [pools](int64_t, int64_t half) { return half / pools; });
  Amounts most = share;
  combine(most, half, std::plus<>());
  for_each_pool([&](BlockPool& pool) { pool.allow(&pool == risen ? most : share); });
}

void CachingAllocator::Impl::note_peak(const BlockPool& risen) {
  MutexLock lock(stats_mutex_);
  deal_allowances(count_pools().current, &risen);
}

AllocatorStats CachingAllocator::Impl::stats() {
  AllocatorStats stats;
  {
    MutexLock lock(stats_mutex_);
    const Sums sums = count_pools();
    const auto value = [&](Counter counter) NO_THREAD_SAFETY_ANALYSIS {
      const auto i = static_cast<size_t>(counter);
      StatArray<StatValue> values;
      for (size_t column = 0; column < kStatTypes; ++column) {
        const int64_t current = sums.current[column][i], increases = sums.increases[column][i];
        const int64_t hidden_increases = hidden_.increases[column][i];
        const int64_t hidden_decreases = hidden_increases - hidden_.current[column][i];
        values[column] = {current, peaks_[column][i], increases - hidden_increases,
                          increases - current - hidden_decreases};
      }
      return values;
    };
    stats.allocation = value(Counter::kAllocation);
    stats.active = value(Counter::kActive);
    stats.inactive_split = value(Counter::kInactiveSplit);
    stats.allocated_bytes = value(Counter::kAllocatedBytes);
    stats.active_bytes = value(Counter::kActiveBytes);
    stats.inactive_split_bytes = value(Counter::kInactiveSplitBytes);
    stats.requested_bytes = value(Counter::kRequestedBytes);
    stats.oversize_allocations = value(Counter::kOversizeAllocation)[0];
  }
  {
    MutexLock lock(growth_mutex_);
    segments_.add_to(stats);
  }
  stats.alloc_retries = alloc_retries_.load(std::memory_order_relaxed);
  stats.ooms = ooms_.load(std::memory_order_relaxed);
  stats.sync_all_streams = sync_all_streams_.load(std::memory_order_relaxed);
  stats.device_allocs = device_allocs_.load(std::memory_order_relaxed);
  stats.device_frees = device_frees_.load(std::memory_order_relaxed);
  return stats;
}

void CachingAllocator::Impl::reset_peak_stats() {
  {
    MutexLock lock(stats_mutex_);
    peaks_ = {};
    deal_allowances(count_pools().current, nullptr);
  }
  MutexLock lock(growth_mutex_);
  segments_.reset_peaks();
}

void CachingAllocator::Impl::reset_accumulated_stats() {
  {
    MutexLock lock(stats_mutex_);
    hidden_ = count_pools();
  }
  {
    MutexLock lock(growth_mutex_);
    segments_.reset_accumulated();
  }
  for (EventCount* count : {&alloc_retries_, &ooms_, &sync_all_streams_, &device_allocs_, &device_frees_})
    count->store(0, std::memory_order_relaxed);
}

CachingAllocator::CachingAllocator(Context& context, bool deterministic)
    : impl_(std::make_unique<Impl>(context.driver(), context.device(), context.ordinal(), &context, deterministic,
                                   initial_allocator_options())) {}
CachingAllocator::CachingAllocator(Driver& driver, DeviceIndex device, DeviceIndex ordinal, bool deterministic,
                                   const AllocatorOptions& options)
    : impl_(std::make_unique<Impl>(driver, device, ordinal, nullptr, deterministic, options)) {}
CachingAllocator::~CachingAllocator() = default;

Block* CachingAllocator::allocate(size_t bytes, Queue& queue, StreamId stream) {
  return impl_->allocate(bytes, queue, stream);
}
void CachingAllocator::free(Block* block) noexcept { impl_->free(static_cast<CachedBlock&>(*block)); }
void CachingAllocator::record_stream(Block* block, Queue& queue) {
  auto& cached = static_cast<CachedBlock&>(*block);
  cached.pool->record_use(cached, queue);
}
Block* CachingAllocator::find(const void* address) const { return impl_->find(address); }
std::vector<SegmentSnapshot> CachingAllocator::snapshot() const { return impl_->snapshot(); }
void CachingAllocator::release_cached() { impl_->release_cached(); }
void CachingAllocator::set_options(const AllocatorOptions& options) { impl_->set_options(options); }
AllocatorOptions CachingAllocator::options() const { return impl_->options(); }
void CachingAllocator::set_memory_fraction(double fraction) { impl_->set_memory_fraction(fraction); }
double CachingAllocator::memory_fraction() const { return impl_->memory_fraction(); }
AllocatorStats CachingAllocator::stats() const { return impl_->stats(); }
void CachingAllocator::reset_peak_stats() { impl_->reset_peak_stats(); }
void CachingAllocator::reset_accumulated_stats() { impl_->reset_accumulated_stats(); }

}  // namespace npu
