// Mutexes with Clang's thread-safety annotations, checked by `-Wthread-safety`; plain std::mutex elsewhere.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define NPU_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define NPU_THREAD_ANNOTATION(x)
#endif

#define CAPABILITY(x) NPU_THREAD_ANNOTATION(capability(x))
#define SCOPED_CAPABILITY NPU_THREAD_ANNOTATION(scoped_lockable)
#define GUARDED_BY(x) NPU_THREAD_ANNOTATION(guarded_by(x))
#define REQUIRES(...) NPU_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) NPU_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) NPU_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) NPU_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define RELEASE(...) NPU_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS NPU_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace npu {

class CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits on a Mutex that the caller already holds.
using ConditionVariable = std::condition_variable_any;

}  // namespace npu
