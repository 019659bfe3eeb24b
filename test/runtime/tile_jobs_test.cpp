#include "runtime/driver/sim/tile_jobs.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace npu::testing {
namespace {

struct Counts {
  std::array<std::atomic<int>, 500> of_tile{};
};
const TileFunction kCount = [](void* closure, int64_t tile) { ++static_cast<Counts*>(closure)->of_tile[tile]; };

TEST(TileJobsTest, EveryTileRunsOnceWithHelpersFromManyThreads) {
  TileJobs jobs;
  std::atomic<bool> stop{false};
  std::vector<std::thread> helpers;
  for (int i = 0; i < 3; ++i)
    helpers.emplace_back([&] {
      while (!stop) jobs.help(TileJobs::Helper::kHost);
    });
  for (int round = 0; round < 200; ++round) {
    Counts counts;
    jobs.run(500, kCount, &counts, true, [] {});
    for (const auto& count : counts.of_tile) ASSERT_EQ(count, 1);
  }
  stop = true;
  for (std::thread& helper : helpers) helper.join();
  EXPECT_FALSE(jobs.any(TileJobs::Helper::kWorker));
}

TEST(TileJobsTest, HelpFindsNothingWhenThereIsNothing) {
  TileJobs jobs;
  EXPECT_FALSE(jobs.help(TileJobs::Helper::kHost));
}

TEST(TileJobsTest, HostsLeaveTilesOfOthersFunctionsAlone) {
  TileJobs jobs;
  Counts counts;
  bool host_helped = true, worker_helped = false, for_hosts = true;
  jobs.run(500, kCount, &counts, /*hosts_may_help=*/false, [&] {
    for_hosts = jobs.any(TileJobs::Helper::kHost);
    host_helped = jobs.help(TileJobs::Helper::kHost);
    worker_helped = jobs.help(TileJobs::Helper::kWorker);
  });
  EXPECT_FALSE(for_hosts);
  EXPECT_FALSE(host_helped);
  EXPECT_TRUE(worker_helped);
}

TEST(TileJobsTest, MoreJobsThanPlacesStillComplete) {
  TileJobs jobs;
  std::vector<std::thread> owners;
  std::atomic<int> done{0};
  for (int i = 0; i < 12; ++i)
    owners.emplace_back([&] {
      Counts counts;
      for (int round = 0; round < 20; ++round) jobs.run(500, kCount, &counts, true, [] {});
      bool exact = true;
      for (const auto& count : counts.of_tile) exact &= count == 20;
      if (exact) ++done;
    });
  for (std::thread& owner : owners) owner.join();
  EXPECT_EQ(done, 12);
}

TEST(TileJobsTest, TheFirstExceptionReachesTheOwner) {
  TileJobs jobs;
  const TileFunction fail = [](void*, int64_t tile) {
    if (tile == 7) throw std::runtime_error("tile 7");
  };
  EXPECT_THROW(jobs.run(10, fail, nullptr, true, [] {}), std::runtime_error);
  EXPECT_FALSE(jobs.any(TileJobs::Helper::kWorker));
}

}  // namespace
}  // namespace npu::testing
