#include "runtime/driver/sim/engines.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "test_device.h"

namespace npu::testing {
namespace {

// Counts how many tasks run at once and holds them until released.
struct Meter {
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  std::atomic<bool> release{false};
};
Meter g_vector, g_cube, g_copy;

void hold(Meter& meter) {
  const int now = ++meter.running;
  int most = meter.most;
  while (now > most && !meter.most.compare_exchange_weak(most, now)) {
  }
  while (!meter.release) std::this_thread::yield();
  --meter.running;
}

const TaskInfo kVectorHold{.name = "test::vector",
                           .run = [](const TaskContext&, const void*) { hold(g_vector); },
                           .engines = kVectorEngine,
                           .flags = 0};
const TaskInfo kCubeHold{.name = "test::cube",
                         .run = [](const TaskContext&, const void*) { hold(g_cube); },
                         .engines = kCubeEngine,
                         .flags = 0};
const TaskInfo kCopyHold{.name = "test::copy",
                         .run = [](const TaskContext&, const void*) { hold(g_copy); },
                         .engines = kDmaInEngine,
                         .flags = 0};
const TaskInfo kMixedHold{.name = "test::mixed",
                          .run = [](const TaskContext&, const void*) { hold(g_cube); },
                          .engines = kMixedEngine,
                          .flags = 0};

void reset_meters() {
  for (Meter* meter : {&g_vector, &g_cube, &g_copy}) {
    meter->running = 0;
    meter->most = 0;
    meter->release = false;
  }
}

void wait_until_running(const Meter& meter, int count) {
  while (meter.running < count) std::this_thread::yield();
}

SimOptions one_of_each() {
  SimOptions options = small_device();
  options.workers = 5;
  options.cube_cores = 1;
  options.vector_cores = 1;
  return options;
}

TEST(EnginesTest, TwoVectorTasksQueueOnOneCoreWhileCubeAndCopyRunBeside) {
  reset_meters();
  TestDevice device(one_of_each());
  Stream& first = device.stream();
  Stream& second = device.stream();
  first.launch(kVectorHold, 0);
  second.launch(kVectorHold, 0);
  device.stream().launch(kCubeHold, 0);
  device.stream().launch(kCopyHold, 0);
  wait_until_running(g_vector, 1);
  wait_until_running(g_cube, 1);
  wait_until_running(g_copy, 1);
  EXPECT_EQ(g_vector.running, 1);
  EXPECT_FALSE(first.query() || second.query());
  g_vector.release = g_cube.release = g_copy.release = true;
  device.context.synchronize();
  EXPECT_EQ(g_vector.most, 1);
}

TEST(EnginesTest, AsManyRunAtOnceAsThereAreCores) {
  reset_meters();
  SimOptions options = one_of_each();
  options.vector_cores = 2;
  TestDevice device(options);
  for (int i = 0; i < 4; ++i) device.stream().launch(kVectorHold, 0);
  wait_until_running(g_vector, 2);
  EXPECT_EQ(g_vector.running, 2);
  g_vector.release = true;
  device.context.synchronize();
  EXPECT_EQ(g_vector.most, 2);
}

TEST(EnginesTest, AMixedTaskHoldsBothEngines) {
  reset_meters();
  TestDevice device(one_of_each());
  Stream& vector_stream = device.stream();
  device.stream().launch(kMixedHold, 0);
  wait_until_running(g_cube, 1);
  vector_stream.launch(kVectorHold, 0);
  EXPECT_EQ(g_vector.running, 0);
  g_cube.release = true;
  wait_until_running(g_vector, 1);
  g_vector.release = true;
  device.context.synchronize();
}

TEST(EnginesTest, ABusyStreamDoesNotStarveAnother) {
  reset_meters();
  TestDevice device(one_of_each());
  Stream& busy = device.stream();
  Stream& other = device.stream();
  DeviceInt count(device.context, 0), seen(device.context, -1);
  static const TaskInfo add{.name = "test::add", .run = [](const TaskContext& context, const void* arguments) {
                              *context.translate(static_cast<const StoreArguments*>(arguments)->address) += 1;
                            }};
  busy.launch(kVectorHold, 0);
  for (int i = 0; i < 1000; ++i) busy.launch(add, StoreArguments{count.address(), 1});
  wait_until_running(g_vector, 1);
  other.launch(kCopyInt, CopyArguments{seen.address(), count.address()});
  while (device.driver.describe_waits().find("waits for a free vector engine") == std::string::npos)
    std::this_thread::yield();
  g_vector.release = true;
  other.synchronize();
  EXPECT_LT(seen.read(), 1000);
  busy.synchronize();
  EXPECT_EQ(count.read(), 1000);
}

TEST(EnginesTest, UsageCountsTasksAndTime) {
  TestDevice device;
  Stream& stream = device.stream();
  DeviceInt value(device.context, 0);
  for (int i = 0; i < 10; ++i) stream.launch(kStore, StoreArguments{value.address(), i});
  stream.synchronize();
  const EngineUsage usage = device.driver.engine_usage(0, Engine::kVector);
  EXPECT_EQ(usage.tasks, 10u);
  EXPECT_EQ(usage.capacity, small_device().vector_cores);
  EXPECT_EQ(device.driver.engine_usage(0, Engine::kCube).tasks, 0u);
}

}  // namespace
}  // namespace npu::testing
