#include "aten/ops/environment.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <dlfcn.h>

#include <new>
#include <type_traits>

#include "runtime/task.h"

namespace npu::aten {
namespace {

// Looked up, not linked: the functions must be those of the libgomp and MKL that libtorch_cpu itself uses, and builds of
// PyTorch without OpenMP or MKL have none.
template <class Function>
Function find(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}
const auto omp_set_threads = find<void (*)(int)>("omp_set_num_threads");
const auto mkl_set_threads_of_thread = find<int (*)(int)>("MKL_Set_Num_Threads_Local");

const int default_threads = at::get_num_threads();

// The fields that a task changes; the state itself is not trivially copyable.
struct ThreadState {
  c10::impl::PODLocalDispatchKeySet keys;
  bool grad_mode;
  bool fw_grad_mode;
  bool inference_mode;
  bool unobserved;  // RecordFunction was turned off
};
static_assert(sizeof(ThreadState) <= TaskEnvironment::kStateBytes);
static_assert(std::is_trivially_copyable_v<ThreadState>);

c10::impl::PODLocalDispatchKeySet make_task_keys() {
  c10::impl::PODLocalDispatchKeySet keys{};
  keys.set_included(c10::DispatchKeySet(c10::DispatchKey::BackendSelect));
  keys.set_excluded(c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset |
                    c10::default_excluded_set);
  return keys;
}
const c10::impl::PODLocalDispatchKeySet task_keys = make_task_keys();

// Inference mode spares the aliases their version counters; nothing of a task outlives it. Observers (profilers) saw the
// operator when it was called; turning them off costs microseconds, so that is for when there are any.
void enter(void* state) {
  c10::AutogradState& autograd = c10::AutogradState::get_tls_state();
  const auto& saved = *new (state) ThreadState{c10::impl::raw_local_dispatch_key_set, autograd.get_grad_mode(),
                                               autograd.get_fw_grad_mode(), autograd.get_inference_mode(),
                                               at::hasCallbacks() && at::isRecordFunctionEnabled()};
  c10::impl::raw_local_dispatch_key_set = task_keys;
  autograd.set_grad_mode(false);
  autograd.set_fw_grad_mode(false);
  autograd.set_inference_mode(true);
  if (saved.unobserved) [[unlikely]]
    at::enableRecordFunction(false);
}

void leave(void* state) noexcept {
  const auto& saved = *static_cast<const ThreadState*>(state);
  c10::AutogradState& autograd = c10::AutogradState::get_tls_state();
  c10::impl::raw_local_dispatch_key_set = saved.keys;
  autograd.set_grad_mode(saved.grad_mode);
  autograd.set_fw_grad_mode(saved.fw_grad_mode);
  autograd.set_inference_mode(saved.inference_mode);
  if (saved.unobserved) [[unlikely]]
    at::enableRecordFunction(true);
}

const bool registered = [] {
  set_task_environment({enter, leave});
  return true;
}();

}  // namespace

int library_threads() noexcept { return default_threads; }

ThreadWidth::ThreadWidth(int threads) noexcept : previous_(at::get_num_threads()), changed_(previous_ != threads) {
  if (!changed_ || omp_set_threads == nullptr) return;
  omp_set_threads(threads);
  if (mkl_set_threads_of_thread != nullptr) previous_mkl_ = mkl_set_threads_of_thread(threads);
}

ThreadWidth::~ThreadWidth() {
  if (!changed_ || omp_set_threads == nullptr) return;
  omp_set_threads(previous_);
  if (mkl_set_threads_of_thread != nullptr) mkl_set_threads_of_thread(previous_mkl_);
}

}  // namespace npu::aten
