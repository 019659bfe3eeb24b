// Counts what a thread asks of the system between two points: system calls, heap allocations, contended mutexes.
//
// Include it in exactly one source file of a program, or build it as a library for LD_PRELOAD: it replaces malloc and
// pthread_mutex_lock for the whole process. System calls are seen by Syscall User Dispatch (Linux 5.11, x86-64), which
// turns those of one thread into a signal while a byte in memory says so: no tracer, no second process, nothing to trust
// but the kernel. The first call found is named; later ones of the same stretch pass uncounted.
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

extern "C" {

struct CallCounts {
  long heap_allocations;
  long contended_locks;
  long system_calls;       // 0 or 1
  long first_system_call;  // its number
};

namespace call_counter {

#define CALL_COUNTER_TLS __thread __attribute__((tls_model("initial-exec")))
CALL_COUNTER_TLS CallCounts counts;
CALL_COUNTER_TLS bool counting;
CALL_COUNTER_TLS volatile char selector;  // what the kernel looks at: 0 = let system calls through, 1 = signal them

}  // namespace call_counter

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* address, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

__attribute__((visibility("default"))) void* malloc(size_t bytes) {
  call_counter::counts.heap_allocations += call_counter::counting;
  return __libc_malloc(bytes);
}
__attribute__((visibility("default"))) void* calloc(size_t count, size_t bytes) {
  call_counter::counts.heap_allocations += call_counter::counting;
  return __libc_calloc(count, bytes);
}
__attribute__((visibility("default"))) void* realloc(void* address, size_t bytes) {
  call_counter::counts.heap_allocations += call_counter::counting;
  return __libc_realloc(address, bytes);
}
__attribute__((visibility("default"))) void* aligned_alloc(size_t alignment, size_t bytes) {
  call_counter::counts.heap_allocations += call_counter::counting;
  return __libc_memalign(alignment, bytes);
}
__attribute__((visibility("default"))) int posix_memalign(void** address, size_t alignment, size_t bytes) {
  call_counter::counts.heap_allocations += call_counter::counting;
  *address = __libc_memalign(alignment, bytes);
  return *address != nullptr ? 0 : ENOMEM;
}

__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static Lock real;  // the same value from whichever thread writes it
  if (call_counter::counting && pthread_mutex_trylock(mutex) == 0) return 0;
  call_counter::counts.contended_locks += call_counter::counting;
  if (real == nullptr) real = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  return real(mutex);
}

namespace call_counter {

inline void on_system_call(int, siginfo_t* info, void* context) {
  selector = 0;
  greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (info->si_syscall != SYS_clock_gettime) {  // the vDSO asks the kernel where the machine's clock needs it
    counts.system_calls = 1;
    counts.first_system_call = info->si_syscall;
  }
  const long result = syscall(info->si_syscall, registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                              registers[REG_R10], registers[REG_R8], registers[REG_R9]);
  registers[REG_RAX] = result == -1 ? -errno : result;
}

}  // namespace call_counter

// Starts counting on this thread. False when the kernel cannot show system calls; nothing is counted then.
__attribute__((visibility("default"))) bool call_counter_start() {
  struct sigaction action = {};
  action.sa_sigaction = call_counter::on_system_call;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  if (sigaction(SIGSYS, &action, nullptr) != 0) return false;
  call_counter::selector = 0;
  if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &call_counter::selector) != 0) return false;
  call_counter::counts = {};
  call_counter::counting = true;
  call_counter::selector = 1;
  return true;
}

__attribute__((visibility("default"))) CallCounts call_counter_stop() {
  call_counter::selector = 0;
  call_counter::counting = false;
  prctl(PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0);
  return call_counter::counts;
}

}  // extern "C"
