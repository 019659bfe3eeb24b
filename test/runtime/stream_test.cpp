#include "runtime/stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "test_device.h"

namespace npu::testing {
namespace {

TEST(StreamTest, RunsTasksInOrder) {
  TestDevice device;
  Stream& stream = device.stream();
  DeviceInt value(device.context, 0);
  for (int64_t digit : {1, 2, 3, 4}) stream.launch(kAppend, StoreArguments{value.address(), digit});
  stream.synchronize();
  EXPECT_EQ(value.read(), 1234);
  EXPECT_EQ(stream.submitted(), 4u);
  EXPECT_TRUE(stream.query());
}

TEST(StreamTest, LaunchReturnsWhileTheGateIsClosed) {
  TestDevice device;
  Stream& stream = device.stream();
  DeviceInt value(device.context, 0);
  Gate gate(stream);
  stream.launch(kStore, StoreArguments{value.address(), 7}, 10);
  EXPECT_FALSE(stream.query());
  EXPECT_FALSE(stream.synchronize_for(1'000'000));
  EXPECT_EQ(value.read(), 0);
  gate.open();
  stream.synchronize();
  EXPECT_EQ(value.read(), 7);
}

TEST(StreamTest, TinyTaskOnAnIdleStreamRunsOnTheLaunchingThread) {
  TestDevice device;
  Stream& stream = device.stream();
  static std::thread::id executed_by;
  static const TaskInfo who{.name = "test::who",
                            .run = [](const TaskContext&, const void*) { executed_by = std::this_thread::get_id(); }};
  stream.launch(who, 0, /*cost_ns=*/50);
  stream.synchronize();
  EXPECT_EQ(executed_by, std::this_thread::get_id());
}

TEST(StreamTest, WithoutInliningAWorkerRunsTheTask) {
  SimOptions options = small_device();
  options.inline_tasks = false;
  TestDevice device(options);
  Stream& stream = device.stream();
  static std::atomic<bool> elsewhere{false};
  static std::thread::id launcher;
  launcher = std::this_thread::get_id();
  static const TaskInfo who{
      .name = "test::who",
      .run = [](const TaskContext&, const void*) { elsewhere = std::this_thread::get_id() != launcher; },
      .flags = 0};
  stream.launch(who, 0, 50);
  stream.synchronize();
  EXPECT_TRUE(elsewhere);
}

TEST(StreamTest, LargeArgumentsArriveWhole) {
  TestDevice device;
  Stream& stream = device.stream();
  static std::atomic<int> good;
  good = 0;
  static const TaskInfo check{.name = "test::check", .run = [](const TaskContext& context, const void* arguments) {
                                const auto* words = static_cast<const uint64_t*>(arguments);
                                const uint64_t count = words[0];
                                bool same = true;
                                for (uint64_t i = 1; i < count; ++i) same &= words[i] == count * 1000 + i;
                                if (same && context.number > 0) ++good;
                              }};
  int launched = 0;
  for (uint64_t count : {4, 27, 28, 500, 5'000, 40'000, 300, 33'000, 90'000, 2}) {
    for (int repeat = 0; repeat < 20; ++repeat, ++launched) {
      std::vector<uint64_t> words(count);
      words[0] = count;
      for (uint64_t i = 1; i < count; ++i) words[i] = count * 1000 + i;
      stream.launch_bytes({check, words.data(), words.size() * 8});
    }
  }
  stream.synchronize();
  EXPECT_EQ(good, launched);
}

TEST(StreamTest, ManyThreadsSubmitToOneStream) {
  SimOptions options = small_device();
  options.queue_depth = 64;  // small enough to fill up
  TestDevice device(options);
  Stream& stream = device.stream();
  DeviceInt sum(device.context, 0);
  static const TaskInfo add{.name = "test::add", .run = [](const TaskContext& context, const void* arguments) {
                              const auto& store = *static_cast<const StoreArguments*>(arguments);
                              *context.translate(store.address) += store.value;
                            }};
  constexpr int kThreads = 4, kTasks = 5'000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTasks; ++i) stream.launch(add, StoreArguments{sum.address(), 1}, i % 3 == t % 3 ? 50 : 0);
    });
  for (std::thread& thread : threads) thread.join();
  stream.synchronize();
  EXPECT_EQ(sum.read(), kThreads * kTasks);
}

TEST(StreamTest, StreamsAreNotOrderedWithTheDefaultStream) {
  TestDevice device;
  Stream& side = device.stream();
  DeviceInt value(device.context, 0);
  Gate gate(device.context.default_stream());
  side.launch(kStore, StoreArguments{value.address(), 5});
  side.synchronize();
  EXPECT_EQ(value.read(), 5);
  EXPECT_FALSE(gate.is_open());
}

TEST(StreamTest, HigherPriorityRunsFirstAmongReadyStreams) {
  SimOptions options = small_device();
  options.workers = 1;
  TestDevice device(options);
  Stream& blocker = device.context.create_stream(kGreatestPriority);
  Stream& low = device.context.create_stream(kLeastPriority);
  Stream& high = device.context.create_stream(kGreatestPriority);
  static std::atomic<bool> release;
  release = false;
  static const TaskInfo hold{.name = "test::hold",
                             .run =
                                 [](const TaskContext&, const void*) {
                                   while (!release) std::this_thread::yield();
                                 },
                             .flags = 0};
  DeviceInt order(device.context, 0);
  blocker.launch(hold, 0);  // keeps the only worker busy while the others become ready
  low.launch(kAppend, StoreArguments{order.address(), 2});
  high.launch(kAppend, StoreArguments{order.address(), 1});
  release = true;
  while (!low.query() || !high.query()) std::this_thread::yield();
  EXPECT_EQ(order.read(), 12);
}

TEST(StreamTest, HostFunctionsRunInOrderOnTheirOwnThread) {
  SimOptions options = small_device();
  options.workers = 1;
  TestDevice device(options);
  Stream& stream = device.stream();
  DeviceInt value(device.context, 0);
  struct Seen {
    DeviceInt* value;
    int64_t at_call = -1;
    std::thread::id thread{};
  } seen{&value};
  stream.launch(kStore, StoreArguments{value.address(), 3});
  stream.launch_host_function(
      [](void* data) {
        auto& s = *static_cast<Seen*>(data);
        s.at_call = s.value->read();
        s.thread = std::this_thread::get_id();
      },
      &seen);
  stream.launch(kStore, StoreArguments{value.address(), 4});
  stream.synchronize();
  EXPECT_EQ(seen.at_call, 3);
  EXPECT_EQ(value.read(), 4);
  EXPECT_NE(seen.thread, std::this_thread::get_id());
}

TEST(StreamTest, DestroyReturnsAtOnceAndQueuedWorkCompletes) {
  TestDevice device;
  DeviceInt value(device.context, 0);
  Stream& stream = device.stream();
  const StreamId id = stream.id();
  auto gate = std::make_unique<Gate>(stream);
  stream.launch(kStore, StoreArguments{value.address(), 9});
  Event done;
  done.record(stream);
  device.context.destroy_stream(stream);
  EXPECT_EQ(device.context.find_stream(id), nullptr);
  EXPECT_FALSE(done.query());
  gate->open();
  done.synchronize();
  EXPECT_EQ(value.read(), 9);
  EXPECT_NE(device.stream().id(), id);
}

TEST(StreamTest, ADestroyedStreamIsWaitedForAndRefusesWork) {
  TestDevice device;
  DeviceInt value(device.context, 0);
  Stream& stream = device.stream();
  auto gate = std::make_unique<Gate>(stream);
  stream.launch(kStore, StoreArguments{value.address(), 9});
  device.context.destroy_stream(stream);
  EXPECT_FALSE(device.context.synchronize_for(0));
  gate->open();
  device.context.synchronize();
  EXPECT_EQ(value.read(), 9);
  EXPECT_EQ(device.context.queued_work().size(), device.context.streams().size());
  EXPECT_THROW(stream.launch(kStore, StoreArguments{value.address(), 1}), Error);
  EXPECT_THROW(stream.synchronize(), Error);
  EXPECT_THROW(Event().record(stream), Error);
  EXPECT_THROW(device.context.destroy_stream(stream), Error);
}

TEST(StreamTest, WriteValueOpensAnotherStreamsWait) {
  TestDevice device;
  Stream& producer = device.stream();
  Stream& consumer = device.stream();
  DeviceInt value(device.context, 0);
  Signal& signal = device.driver.create_signal();
  consumer.wait_value(signal, 2);
  consumer.launch(kStore, StoreArguments{value.address(), 1});
  producer.write_value(signal, 1);
  producer.synchronize();
  EXPECT_FALSE(consumer.query());
  producer.write_value(signal, 2);
  consumer.synchronize();
  EXPECT_EQ(value.read(), 1);
  device.driver.destroy_signal(signal);
}

TEST(StreamTest, ATaskMustNotWaitForAStream) {
  TestDevice device;
  static Stream* target;
  Stream& stream = device.stream();
  Stream& other = device.stream();
  target = &other;
  Gate gate(other);
  static const TaskInfo waits{.name = "test::waits",
                              .run = [](const TaskContext&, const void*) { target->synchronize(); }};
  stream.launch(waits, 0);
  EXPECT_THROW(stream.synchronize(), Error);
}

TEST(StreamTest, TilesOfALargeTaskRunExactlyOnce) {
  TestDevice device;
  Stream& stream = device.stream();
  static std::array<std::atomic<int>, 1000> counts;
  for (auto& count : counts) count = 0;
  static const TaskInfo tiled{.name = "test::tiled", .run = [](const TaskContext& context, const void*) {
                                context.parallel_for(1000, [&](int64_t tile) { ++counts[tile]; });
                              }};
  for (int i = 0; i < 10; ++i) stream.launch(tiled, 0);
  stream.synchronize();
  for (const auto& count : counts) EXPECT_EQ(count, 10);
}

TEST(StreamTest, AnExceptionOfATileFailsTheTask) {
  TestDevice device;
  Stream& stream = device.stream();
  static const TaskInfo tiled{.name = "test::tiled", .run = [](const TaskContext& context, const void*) {
                                context.parallel_for(100, [&](int64_t tile) {
                                  if (tile == 63) throw std::runtime_error("tile 63");
                                });
                              }};
  stream.launch(tiled, 0);
  EXPECT_THROW(stream.synchronize(), Error);
}

}  // namespace
}  // namespace npu::testing
