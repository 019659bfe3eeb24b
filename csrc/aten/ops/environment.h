// What PyTorch's per-thread state is while a task runs, and how many OpenMP threads a task may use.
//
// Tasks flagged kUsesEnvironment see no grad mode and no autograd, autocast, functorch or Python dispatch key, and no
// RecordFunction observer (a profiler) sees the operators they call, whoever executes them: a worker, a waiting host
// thread, or the submitting thread itself. Library code may differ in its last bits from one OpenMP width to another, so
// the width comes with the task and depends on its shapes.
#pragma once

#include <c10/util/Exception.h>

namespace npu::aten {

// OpenMP threads of large tasks: as many as PyTorch would use on its own, fixed when the library is loaded.
int library_threads() noexcept;

// OpenMP and MKL width of the calling thread for a scope.
class ThreadWidth {
 public:
  explicit ThreadWidth(int threads) noexcept;
  ~ThreadWidth();
  ThreadWidth(const ThreadWidth&) = delete;
  ThreadWidth& operator=(const ThreadWidth&) = delete;

 private:
  int previous_;
  int previous_mkl_ = 0;
  bool changed_;
};

// Drops the warnings of the calling thread for a scope, which the host has given.
class Silence final : c10::WarningHandler {
 public:
  Silence() : guard_(this) {}
  void process(const c10::Warning&) override {}

 private:
  const c10::WarningUtils::WarningHandlerGuard guard_;
};

}  // namespace npu::aten
