#include "runtime/memory/block_pool.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace npu {
namespace {

constexpr size_t kSlabBlocks = 64;
constexpr size_t kLargestWaste = size_t{1} << 20;  // a large block keeps up to this much that was not asked for

bool should_split(const CachedBlock& block, const Request& request) {
  const size_t rest = block.bytes - request.bytes;
  if (block.kind == StatType::kSmallPool) return rest >= kBlockUnit;
  return request.bytes < request.options->max_split_bytes && rest > kLargestWaste;
}

// A block that is large enough may be too large: it would be wasted, or cut where the options forbid it.
bool is_too_large(const CachedBlock& block, const Request& request) {
  const AllocatorOptions& options = *request.options;
  if (block.kind == StatType::kSmallPool || block.bytes < options.max_split_bytes) return false;
  return request.bytes < options.max_split_bytes || block.bytes - request.bytes >= options.max_non_split_rounding_bytes;
}

bool uses_completed(const CachedBlock& block) {
  return std::all_of(block.uses.begin(), block.uses.end(),
                     [](const QueuePoint& use) { return use.queue->completed() >= use.number; });
}

}  // namespace

BlockPool::Taken BlockPool::take(const Request& request, Reuse reuse) {
  MutexLock lock(mutex_);
  const bool in_order = reuse == Reuse::kInStreamOrder;
  if (CachedBlock* const freed = drain(in_order ? request.bytes : 0)) return mark_live(*freed, request);
  CachedBlock* block = free_list(request.kind).find(request.bytes);
  if (block == nullptr && !pending_.empty()) {
    reclaim_pending();
    block = free_list(request.kind).find(request.bytes);
  }
  if (block == nullptr || is_too_large(*block, request)) return {};
  if (!in_order && block->freed_at > queue_.completed()) return {};
  return hand_out(*block, request);
}

BlockPool::Taken BlockPool::take_from(const Segment& segment, const Request& request) {
  MutexLock lock(mutex_);
  CachedBlock& block = new_block();
  block.address = segment.base;
  block.bytes = segment.bytes;
  block.device = device_;
  block.kind = segment.kind;
  block.in_oversize_segment = segment.is_oversize;
  block.pool = this;
  block.freed_at = 0;
  block.stream = request.stream;
  segments_.emplace(segment.base, &block);
  insert_free(block);
  return hand_out(block, request);
}

void BlockPool::push(CachedBlock& block) noexcept {
  block.freed_at = queue_.submitted();
  for (QueuePoint& use : block.uses) use.number = use.queue->submitted();
  block.state.store(State::kFreed, std::memory_order_relaxed);
  block.after = freed_.load(std::memory_order_relaxed);
  // Pairs with the acquire exchange in drain(), which sees the block as it is now.
  while (!freed_.compare_exchange_weak(block.after, &block, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

void BlockPool::record_use(CachedBlock& block, Queue& user) {
  if (&user == &queue_) return;
  MutexLock lock(mutex_);
  const auto is_user = [&user](const QueuePoint& use) { return use.queue == &user; };
  if (std::none_of(block.uses.begin(), block.uses.end(), is_user)) block.uses.push_back({&user, 0});
}

std::vector<Segment> BlockPool::remove_finished_segments() {
  MutexLock lock(mutex_);
  drain();
  reclaim_pending();
  std::vector<CachedBlock*> finished;
  for (const auto& [base, first] : segments_)
    if (is_finished_segment(*first)) finished.push_back(first);
  std::vector<Segment> removed;
  removed.reserve(finished.size());
  for (CachedBlock* first : finished) removed.push_back(remove_segment(*first));
  return removed;
}

Segment BlockPool::remove_finished_segment(const Request& request) {
  MutexLock lock(mutex_);
  drain();
  reclaim_pending();
  CachedBlock* best = nullptr;
  for (const auto& [base, first] : segments_)
    if (first->kind == request.kind && first->bytes >= request.bytes && !is_too_large(*first, request) &&
        (best == nullptr || first->bytes < best->bytes) && is_finished_segment(*first))
      best = first;
  return best == nullptr ? Segment{} : remove_segment(*best);
}

Segment BlockPool::remove_finished_segment(const void* base) {
  MutexLock lock(mutex_);
  const auto found = segments_.find(base);
  return found != segments_.end() && is_finished_segment(*found->second) ? remove_segment(*found->second) : Segment{};
}

std::vector<BlockPool::Idle> BlockPool::finished_segments() {
  MutexLock lock(mutex_);
  drain();
  reclaim_pending();
  std::vector<Idle> finished;
  for (const auto& [base, first] : segments_)
    if (is_finished_segment(*first))
      finished.push_back({{first->address, first->bytes, first->kind}, queue_.completed() - first->freed_at});
  return finished;
}

void BlockPool::count(Amounts& current, Amounts& increases) {
  MutexLock lock(mutex_);
  drain();
  reclaim_pending();
  counted_ = counters_.current();
  combine(current, counted_, std::plus<>());
  combine(increases, counters_.increases(), std::plus<>());
}

void BlockPool::allow(const Amounts& extra) {
  MutexLock lock(mutex_);
  Amounts allowance = counted_;
  combine(allowance, extra, std::plus<>());
  counters_.set_allowance(allowance);
}

std::vector<QueuePoint> BlockPool::pending() {
  MutexLock lock(mutex_);
  drain();
  std::vector<QueuePoint> uses;
  for (const CachedBlock* block : pending_) uses.insert(uses.end(), block->uses.begin(), block->uses.end());
  return uses;
}

size_t BlockPool::largest_free_bytes() {
  MutexLock lock(mutex_);
  drain();
  return std::max(small_.largest_bytes(), large_.largest_bytes());
}

std::vector<Segment> BlockPool::segments() {
  MutexLock lock(mutex_);
  std::vector<Segment> all;
  for (const auto& [base, first] : segments_) {
    all.push_back({first->address, 0, first->kind});
    for (const CachedBlock* block = first; block != nullptr; block = block->next) all.back().bytes += block->bytes;
  }
  return all;
}

void BlockPool::add_to(std::vector<SegmentSnapshot>& segments) {
  using Shown = BlockSnapshot::State;
  MutexLock lock(mutex_);
  drain();
  for (const auto& [base, first] : segments_) {
    SegmentSnapshot& segment = segments.emplace_back();
    segment.address = reinterpret_cast<uintptr_t>(first->address);
    segment.kind = first->kind;
    segment.stream = first->stream;
    for (const CachedBlock* block = first; block != nullptr; block = block->next) {
      const State state = block->state.load(std::memory_order_relaxed);
      const Shown shown = state == State::kFree      ? Shown::kInactive
                          : state == State::kPending ? Shown::kPendingFree
                                                     : Shown::kAllocated;
      segment.bytes += block->bytes;
      segment.blocks.push_back({reinterpret_cast<uintptr_t>(block->address), block->bytes,
                                shown == Shown::kInactive ? 0 : block->requested_bytes, shown});
    }
  }
}

CachedBlock* BlockPool::find(const void* address) {
  MutexLock lock(mutex_);
  CachedBlock* const block = block_around(address);
  return block != nullptr && block->state.load(std::memory_order_relaxed) == State::kLive ? block : nullptr;
}

BlockHistory BlockPool::history(const void* address) noexcept {
  if (!mutex_.try_lock()) return {};
  BlockHistory found;
  if (const CachedBlock* const block = block_around(address)) {
    const State state = block->state.load(std::memory_order_relaxed);
    found = {.base = reinterpret_cast<uintptr_t>(block->address),
             .bytes = state == State::kFree || block->requested_bytes == 0 ? block->bytes : block->requested_bytes,
             .stream = block->stream,
             .live = state == State::kLive};
  }
  mutex_.unlock();
  return found;
}

CachedBlock* BlockPool::block_around(const void* address) const {
  const auto after = segments_.upper_bound(address);
  if (after == segments_.begin()) return nullptr;
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  for (CachedBlock* block = std::prev(after)->second; block != nullptr; block = block->next)
    if (wanted - reinterpret_cast<uintptr_t>(block->address) < block->bytes) return block;
  return nullptr;
}

CachedBlock* BlockPool::drain(size_t wanted_bytes) {
  if (freed_.load(std::memory_order_relaxed) == nullptr) return nullptr;
  CachedBlock* match = nullptr;
  CachedBlock* block = freed_.exchange(nullptr, std::memory_order_acquire);
  while (block != nullptr) {
    CachedBlock* const after = block->after;
    counters_.decrease(block->kind, Counter::kAllocation, 1);
    counters_.decrease(block->kind, Counter::kAllocatedBytes, static_cast<int64_t>(block->bytes));
    counters_.decrease(block->kind, Counter::kRequestedBytes, static_cast<int64_t>(block->requested_bytes));
    if (block->is_oversize) counters_.decrease(block->kind, Counter::kOversizeAllocation, 1);
    if (!block->uses.empty()) {
      block->state.store(State::kPending, std::memory_order_relaxed);
      pending_.push_back(block);
    } else {
      make_inactive(*block);
      if (match == nullptr && block->bytes == wanted_bytes)
        match = block;
      else
        make_free(*block);
    }
    block = after;
  }
  return match;
}

void BlockPool::reclaim_pending() {
  std::erase_if(pending_, [this](CachedBlock* block) NO_THREAD_SAFETY_ANALYSIS {
    if (!uses_completed(*block)) return false;
    block->uses.clear();
    make_inactive(*block);
    make_free(*block);
    return true;
  });
}

void BlockPool::make_inactive(const CachedBlock& block) {
  counters_.decrease(block.kind, Counter::kActive, 1);
  counters_.decrease(block.kind, Counter::kActiveBytes, static_cast<int64_t>(block.bytes));
}

void BlockPool::make_free(CachedBlock& freed) {
  CachedBlock* block = &freed;
  const auto is_free = [](const CachedBlock* neighbour) {
    return neighbour != nullptr && neighbour->state.load(std::memory_order_relaxed) == State::kFree;
  };
  if (is_free(block->next)) {
    remove_free(*block->next);
    merge_into(*block);
  }
  if (is_free(block->previous)) {
    block = block->previous;
    remove_free(*block);
    merge_into(*block);
  }
  insert_free(*block);
}

BlockPool::Taken BlockPool::hand_out(CachedBlock& block, const Request& request) {
  CachedBlock* const rest = should_split(block, request) ? &new_block() : nullptr;
  remove_free(block);
  if (rest != nullptr) {
    split(block, request.bytes, *rest);
    insert_free(*rest);
  }
  return mark_live(block, request);
}

BlockPool::Taken BlockPool::mark_live(CachedBlock& block, const Request& request) {
  block.state.store(State::kLive, std::memory_order_relaxed);
  block.requested_bytes = request.requested_bytes;
  block.stream = request.stream;
  block.is_oversize = block.bytes >= request.options->max_split_bytes;
  if (block.is_oversize) counters_.increase(block.kind, Counter::kOversizeAllocation, 1);
  const auto bytes = static_cast<int64_t>(block.bytes);
  counters_.increase(block.kind, Counter::kAllocation, 1);
  counters_.increase(block.kind, Counter::kActive, 1);
  counters_.increase(block.kind, Counter::kAllocatedBytes, bytes);
  counters_.increase(block.kind, Counter::kActiveBytes, bytes);
  counters_.increase(block.kind, Counter::kRequestedBytes, static_cast<int64_t>(request.requested_bytes));
  return {&block, counters_.is_above_allowance()};
}

void BlockPool::insert_free(CachedBlock& block) {
  block.state.store(State::kFree, std::memory_order_relaxed);
  free_list(block.kind).insert(block);
  if (!block.is_split()) return;
  counters_.increase(block.kind, Counter::kInactiveSplit, 1);
  counters_.increase(block.kind, Counter::kInactiveSplitBytes, static_cast<int64_t>(block.bytes));
}

void BlockPool::remove_free(CachedBlock& block) {
  free_list(block.kind).remove(block);
  if (!block.is_split()) return;
  counters_.decrease(block.kind, Counter::kInactiveSplit, 1);
  counters_.decrease(block.kind, Counter::kInactiveSplitBytes, static_cast<int64_t>(block.bytes));
}

void BlockPool::merge_into(CachedBlock& left) {
  CachedBlock* const right = left.next;
  merge_with_next(left);
  right->after = spare_;
  spare_ = right;
}

bool BlockPool::is_finished_segment(const CachedBlock& first) const {
  return first.state.load(std::memory_order_relaxed) == State::kFree && !first.is_split() &&
         first.freed_at <= queue_.completed();
}

Segment BlockPool::remove_segment(CachedBlock& first) {
  remove_free(first);
  segments_.erase(first.address);
  const Segment segment{first.address, first.bytes, first.kind, first.in_oversize_segment};
  first.state.store(State::kSpare, std::memory_order_relaxed);
  first.after = spare_;
  spare_ = &first;
  return segment;
}

CachedBlock& BlockPool::new_block() {
  if (spare_ == nullptr) {
    slabs_.push_back(std::make_unique<CachedBlock[]>(kSlabBlocks));
    for (size_t i = 0; i < kSlabBlocks; ++i) {
      slabs_.back()[i].after = spare_;
      spare_ = &slabs_.back()[i];
    }
  }
  CachedBlock& block = *spare_;
  spare_ = block.after;
  return block;
}

}  // namespace npu
