#include "runtime/event.h"

#include <gtest/gtest.h>

#include "test_device.h"

namespace npu::testing {
namespace {

TEST(EventTest, WaiterSeesWritesOfProducerStream) {
  TestDevice device;
  Stream& producer = device.stream();
  Stream& consumer = device.stream();
  DeviceInt value(device.context, 0), seen(device.context, -1);
  Gate gate(producer);
  producer.launch(kStore, StoreArguments{value.address(), 7});
  Event done;
  done.record(producer);
  consumer.wait(done);
  consumer.launch(kCopyInt, CopyArguments{seen.address(), value.address()});
  EXPECT_FALSE(consumer.query());
  gate.open();
  consumer.synchronize();
  EXPECT_EQ(seen.read(), 7);
}

TEST(EventTest, NeverRecordedCountsAsComplete) {
  TestDevice device;
  Event event;
  EXPECT_TRUE(event.query());
  event.synchronize();
  device.context.default_stream().wait(event);
  EXPECT_EQ(device.context.default_stream().submitted(), 0u);
}

TEST(EventTest, WaitOnACompleteEventTakesNoTask) {
  TestDevice device;
  Stream& a = device.stream();
  Stream& b = device.stream();
  Event event;
  event.record(a);
  b.wait(event);
  EXPECT_EQ(b.submitted(), 0u);
}

TEST(EventTest, AWaitKeepsTheRecordItSaw) {
  TestDevice device;
  Stream& producer = device.stream();
  Stream& later = device.stream();
  Stream& consumer = device.stream();
  DeviceInt value(device.context, 0);
  Event event;
  Gate first(producer);
  event.record(producer);
  consumer.wait(event);
  Gate second(later);
  event.record(later);  // does not change the wait above
  consumer.launch(kStore, StoreArguments{value.address(), 1});
  first.open();
  consumer.synchronize();
  EXPECT_EQ(value.read(), 1);
  EXPECT_FALSE(event.query());
}

TEST(EventTest, RecordOnAFullQueueNeedsNoSlot) {
  SimOptions options = small_device();
  options.queue_depth = 16;
  TestDevice device(options);
  Stream& stream = device.stream();
  DeviceInt value(device.context, 0);
  Gate gate(stream);
  while (stream.submitted() - stream.completed() < 16) stream.launch(kStore, StoreArguments{value.address(), 1});
  Event event;
  event.record(stream);
  EXPECT_FALSE(event.query());
  gate.open();
  event.synchronize();
  EXPECT_TRUE(event.query());
}

TEST(EventTest, ElapsedTimeCountsTheWorkInBetween) {
  TestDevice device;
  Stream& stream = device.stream();
  Event start, end;
  start.record(stream);
  Gate gate(stream);
  end.record(stream);
  EXPECT_THROW(end.elapsed_ms(start), Error);  // not complete
  gate.open();
  end.synchronize();
  EXPECT_GE(end.elapsed_ms(start), 0.0);
  EXPECT_LE(start.elapsed_ms(end), 0.0);
}

TEST(EventTest, ElapsedTimeExplainsWhatIsMissing) {
  TestDevice device;
  Event untimed(false), timed, unrecorded;
  untimed.record(device.context.default_stream());
  timed.record(device.context.default_stream());
  EXPECT_THROW(timed.elapsed_ms(untimed), Error);
  EXPECT_THROW(timed.elapsed_ms(unrecorded), Error);
}

TEST(EventTest, RecordedAgainWhilePendingEachRecordHasItsTime) {
  TestDevice device;
  Stream& stream = device.stream();
  Gate gate(stream);
  Event start, end;
  start.record(stream);
  for (int i = 0; i < 100; ++i) end.record(stream);
  gate.open();
  end.synchronize();
  EXPECT_GE(end.elapsed_ms(start), 0);
  start.record(stream);
  start.synchronize();
  EXPECT_GE(start.elapsed_ms(end), 0);
}

TEST(EventTest, DestroyedWhilePendingIsHarmless) {
  TestDevice device;
  Stream& stream = device.stream();
  Gate gate(stream);
  {
    Event event;
    event.record(stream);
    event.record(stream);
  }
  gate.open();
  stream.synchronize();
}

TEST(EventTest, ChainOfStreamsWorksWithOneWorker) {
  SimOptions options = small_device();
  options.workers = 1;
  TestDevice device(options);
  DeviceInt value(device.context, 0);
  Stream* previous = &device.stream();
  Gate gate(*previous);
  for (int64_t digit = 1; digit <= 9; ++digit) {
    Stream& next = device.stream();
    Event event(false);
    event.record(*previous);
    next.wait(event);
    next.launch(kAppend, StoreArguments{value.address(), digit});
    previous = &next;
  }
  gate.open();
  previous->synchronize();
  EXPECT_EQ(value.read(), 123456789);
}

}  // namespace
}  // namespace npu::testing
