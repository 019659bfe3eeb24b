#include "runtime/driver/sim/tile_jobs.h"

#include "runtime/driver/sim/spin.h"

namespace npu {

int TileJobs::publish(Job& job) {
  job.counted.store(true, std::memory_order_relaxed);
  count(job, 1);
  for (size_t place = 0; place < places_.size(); ++place) {
    Job* empty = nullptr;
    if (!places_[place].job.compare_exchange_strong(empty, &job, std::memory_order_seq_cst)) continue;
    return static_cast<int>(place);
  }
  uncount(job);
  return -1;
}

void TileJobs::count(const Job& job, int change) {
  for (const Helper helper : {Helper::kWorker, Helper::kHost})
    if (helper == Helper::kWorker || job.hosts_may_help)
      jobs_[static_cast<size_t>(helper)].fetch_add(change, std::memory_order_seq_cst);
}

// Whoever finds no tile left first ends the calls for help; the job's last tiles may run on for long.
void TileJobs::uncount(Job& job) {
  if (job.counted.exchange(false, std::memory_order_acq_rel)) count(job, -1);
}

void TileJobs::withdraw(int place) {
  places_[place].job.store(closing(), std::memory_order_seq_cst);
  // Pairs with the pin in help(): a helper that pinned before this store is waited for, one that pins later finds no job.
  for (Spin spin; places_[place].pins.load(std::memory_order_seq_cst) != 0;) spin.pause_or_yield();
  places_[place].job.store(nullptr, std::memory_order_release);
}

bool TileJobs::work_on(Job& job, int64_t limit) {
  int64_t taken = 0;
  for (; taken < limit; ++taken) {
    const int64_t tile = job.next.fetch_add(1, std::memory_order_relaxed);
    if (tile >= job.tiles || job.failed.load(std::memory_order_relaxed)) {
      uncount(job);
      break;
    }
    try {
      job.function(job.closure, tile);
    } catch (...) {  // rethrown by the owner, whoever of the threads failed first
      if (!job.failed.exchange(true, std::memory_order_acq_rel)) job.error = std::current_exception();
    }
  }
  return taken > 0;
}

bool TileJobs::help(Helper helper) {
  for (Place& place : places_) {
    // A look before the pin: one at a place that is being closed would keep its owner waiting.
    if (Job* seen = place.job.load(std::memory_order_relaxed); seen == nullptr || seen == closing()) continue;
    place.pins.fetch_add(1, std::memory_order_seq_cst);
    Job* job = place.job.load(std::memory_order_seq_cst);
    const bool may_help = job != nullptr && job != closing() && (helper == Helper::kWorker || job->hosts_may_help);
    const bool worked = may_help && work_on(*job, 1);
    place.pins.fetch_sub(1, std::memory_order_seq_cst);
    if (worked) return true;
  }
  return false;
}

}  // namespace npu
