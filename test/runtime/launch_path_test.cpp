// What submitting work may cost: no system call, no heap allocation, no contended lock, whatever the worker does meanwhile.
//
// The worker is held inside a task of the stream, so every submission meets a queue that is running and none of them may
// be executed inline: this is the state a program is in that keeps its device busy, and it is the same in every run.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/pointwise.h"
#include "runtime/driver/sim/ring.h"
#include "test_device.h"

// Sanitizers bring their own malloc and locks.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NPU_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define NPU_SANITIZED 1
#endif
#endif
#if defined(__x86_64__) && !defined(NPU_SANITIZED)
#include "../call_counter.h"
#define NPU_CAN_COUNT_CALLS 1
#endif

namespace npu::testing {
namespace {

static_assert(sizeof(Slot) <= 4 * 64, "a task's slot is at most four cache lines");
static_assert(sizeof(kernels::PointwiseArguments) <= kInlineArgumentBytes, "arguments of an add lie in the slot");

#ifdef NPU_CAN_COUNT_CALLS

constexpr int kRounds = 200;

// Keeps a worker inside a task until it is told to go on.
class Hold {
 public:
  explicit Hold(Stream& stream) : stream_(stream) {
    static const TaskInfo spin{.name = "test::hold",
                               .run =
                                   [](const TaskContext&, const void* arguments) {
                                     Hold& hold = **static_cast<Hold* const*>(arguments);
                                     hold.entered_.store(true);
                                     while (!hold.released_.load()) std::this_thread::yield();
                                   },
                               .flags = 0};
    stream.launch(spin, this);
    while (!entered_.load()) std::this_thread::yield();
  }
  ~Hold() {
    released_.store(true);
    stream_.synchronize();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  Stream& stream_;
  std::atomic<bool> entered_{false}, released_{false};
};

// Runs `body` on `threads` new threads at once, and expects that it asks nothing of the system.
void expect_no_calls(int threads, const std::function<void(int thread)>& body) {
  std::atomic<int> waiting{threads};
  std::vector<CallCounts> counts(threads);
  std::atomic<bool> supported{true};
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      body(t);  // once before counting: first uses of thread-local state and of the stream's slots
      waiting.fetch_sub(1);
      while (waiting.load() > 0) std::this_thread::yield();
      if (!call_counter_start()) return supported.store(false);
      body(t);
      counts[t] = call_counter_stop();
    });
  for (std::thread& thread : running) thread.join();
  if (!supported) GTEST_SKIP() << "this kernel has no Syscall User Dispatch (Linux 5.11 on x86-64)";
  for (const CallCounts& count : counts) {
    EXPECT_EQ(count.heap_allocations, 0);
    EXPECT_EQ(count.contended_locks, 0);
    EXPECT_EQ(count.system_calls, 0) << "the first one was number " << count.first_system_call;
  }
}

TEST(CallCounterTest, SeesEachKindOfCall) {
  if (!call_counter_start()) GTEST_SKIP() << "this kernel has no Syscall User Dispatch (Linux 5.11 on x86-64)";
  EXPECT_EQ(call_counter_stop().system_calls, 0);
  std::mutex mutex;
  mutex.lock();
  std::atomic<const volatile CallCounts*> counting{nullptr};
  std::thread other([&] {
    ASSERT_TRUE(call_counter_start());
    counting = &call_counter::counts;
    int* volatile memory = new int;  // volatile: the compiler may not drop the pair
    delete memory;
    mutex.lock();  // held until this call has been seen
    mutex.unlock();
    syscall(SYS_getppid);
    const CallCounts counts = call_counter_stop();
    EXPECT_EQ(counts.heap_allocations, 1);
    EXPECT_EQ(counts.contended_locks, 1);
    EXPECT_EQ(counts.system_calls, 1);
  });
  while (counting == nullptr || counting.load()->contended_locks == 0) std::this_thread::yield();
  mutex.unlock();
  other.join();
}

class LaunchPathTest : public ::testing::TestWithParam<int> {
 protected:
  int threads() const { return GetParam(); }

  TestDevice device_;
  Stream& stream_ = device_.stream();
};
INSTANTIATE_TEST_SUITE_P(SubmittingThreads, LaunchPathTest, ::testing::Values(1, 2));

TEST_P(LaunchPathTest, InPlaceAdd) {
  DeviceInt value(device_.context, 3);
  kernels::PointwiseArguments add{};
  add.out = value.address(), add.self = value.address(), add.other = value.address();
  add.count = 1;
  add.op = kernels::PointwiseOp::kAdd;
  add.dtype = kernels::DType::kInt64;
  const Hold hold(stream_);
  expect_no_calls(threads(), [&](int) {
    for (int i = 0; i < kRounds; ++i) stream_.launch(kernels::kAdd, add, kernels::estimate_ns(24));
  });
}

TEST_P(LaunchPathTest, EventRecord) {
  std::vector<std::unique_ptr<Event>> events;
  for (int i = 0; i < 2 * threads() * kRounds; ++i) events.push_back(std::make_unique<Event>(/*timing=*/false));
  std::vector<size_t> next(threads());
  const Hold hold(stream_);
  expect_no_calls(threads(), [&](int thread) {
    for (int i = 0; i < kRounds; ++i) events[next[thread]++ * threads() + thread]->record(stream_);
  });
}

TEST_P(LaunchPathTest, TimedEventRecord) {
  // Each thread on a stream of its own: an event that takes its time enters the list of the stream it is recorded on.
  std::vector<Stream*> streams;
  std::vector<std::vector<std::unique_ptr<Event>>> events(threads());
  std::vector<size_t> next(threads());
  std::vector<std::unique_ptr<Gate>> gates;
  for (int t = 0; t < threads(); ++t) {
    streams.push_back(&device_.stream());
    gates.push_back(std::make_unique<Gate>(*streams.back()));
    for (int i = 0; i < 2 * kRounds; ++i) events[t].push_back(std::make_unique<Event>(/*timing=*/true));
  }
  expect_no_calls(threads(), [&](int t) {
    for (int i = 0; i < kRounds; ++i) events[t][next[t]++]->record(*streams[t]);
  });
  gates.clear();
  for (Stream* stream : streams) stream->synchronize();
}

TEST_P(LaunchPathTest, WaitForAFinishedEvent) {
  Stream& producer = device_.stream();
  Event event;
  event.record(producer);
  event.synchronize();
  Event events[2];
  for (Event& each : events) each.record(producer);
  const Hold hold(stream_);
  expect_no_calls(threads(), [&](int thread) {
    for (int i = 0; i < kRounds; ++i) stream_.wait(events[thread]);
  });
}

TEST_P(LaunchPathTest, AllocatorHit) {
  // The lists of a stream have a lock; threads that allocate at the same moment do so for streams of their own.
  std::vector<Stream*> streams;
  for (int t = 0; t < threads(); ++t) streams.push_back(&device_.stream());
  CachingAllocator& allocator = device_.context.allocator();
  std::vector<Block*> kept;  // a stream without a live block may lose its memory to another one
  for (Stream* stream : streams)
    for (const size_t bytes : {size_t{64}, size_t{3} << 20}) kept.push_back(allocator.allocate(bytes, *stream));
  // A new peak of the sum over all streams is noted under a lock of its own: have it behind us.
  std::vector<Block*> peak;
  for (int i = 0; i < 4; ++i)
    for (Stream* stream : streams)
      for (const size_t bytes : {size_t{64}, size_t{3} << 20}) peak.push_back(allocator.allocate(bytes, *stream));
  for (Block* block : peak) allocator.free(block);
  const Hold hold(stream_);
  expect_no_calls(threads(), [&](int thread) {
    for (int i = 0; i < kRounds; ++i) {
      Block* small = allocator.allocate(64, *streams[thread]);
      Block* large = allocator.allocate(size_t{3} << 20, *streams[thread]);
      allocator.free(large);
      allocator.free(small);
    }
  });
  for (Block* block : kept) allocator.free(block);
}

#endif

}  // namespace
}  // namespace npu::testing
