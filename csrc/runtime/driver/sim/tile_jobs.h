// Pieces of running tasks that idle workers and waiting hosts may take.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>

#include "runtime/task.h"
#include "runtime/thread_annotations.h"

namespace npu {

class TileJobs {
 public:
  enum class Helper : bool { kWorker, kHost };

  // Runs function(closure, i) for every i < tiles on this thread and on those that call help(), hosts only if they may;
  // returns when all are done and rethrows the first exception. `published` is called once helpers can find the job.
  template <class Published>
  void run(int64_t tiles, TileFunction function, void* closure, bool hosts_may_help, const Published& published) {
    Job job{tiles, function, closure, hosts_may_help};
    const int place = publish(job);
    if (place >= 0) published();
    work_on(job, INT64_MAX);
    if (place >= 0) withdraw(place);
    if (job.error) std::rethrow_exception(job.error);
  }

  // Whether a job that this helper may take has tiles nobody has taken.
  bool any(Helper helper) const noexcept {
    return jobs_[static_cast<size_t>(helper)].load(std::memory_order_seq_cst) > 0;
  }
  bool help(Helper helper);  // takes one tile of some job; false = there was nothing to take

 private:
  struct Job {
    int64_t tiles;
    TileFunction function;
    void* closure;
    bool hosts_may_help;
    std::atomic<int64_t> next{0};
    std::atomic<bool> counted{false};  // in jobs_
    std::atomic<bool> failed{false};
    std::exception_ptr error{};
  };
  // A helper pins a place before it reads the job there. The owner closes the place, waits until nobody pins it, and only
  // then gives it to others.
  struct alignas(64) Place {
    std::atomic<Job*> job{nullptr};
    std::atomic<int> pins{0};
  };

  static Job* closing() noexcept { return reinterpret_cast<Job*>(alignof(Job)); }  // no job's address
  int publish(Job& job);  // -1 = every place is taken; the owner is alone then
  void withdraw(int place);
  void count(const Job& job, int change);
  void uncount(Job& job);
  bool work_on(Job& job, int64_t limit);

  std::array<Place, 8> places_;
  std::array<std::atomic<int>, 2> jobs_{};  // by Helper
};

}  // namespace npu
