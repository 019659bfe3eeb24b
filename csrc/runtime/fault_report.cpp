#include "runtime/fault_report.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

namespace npu {

constinit thread_local const CurrentTask* detail::t_current_task = nullptr;

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

const char* name_of(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    default: return "SIGILL";
  }
}

// Entries that a signal handler can read: `used` is set last and cleared first.
template <class Entry, int kMost>
class Table {
 public:
  void add(const Entry& entry) {
    const std::lock_guard lock(writers_);
    for (Slot& slot : slots_) {
      if (slot.used.load(std::memory_order_relaxed)) continue;
      slot.entry = entry;
      slot.used.store(true, std::memory_order_release);
      return;
    }
  }
  void remove(const void* owner) noexcept {
    const std::lock_guard lock(writers_);
    for (Slot& slot : slots_)
      if (slot.entry.owner == owner) slot.used.store(false, std::memory_order_relaxed);
  }
  // The first entry for which `test` is true; null when there is none.
  template <class Test>
  const Entry* find(const Test& test) const {
    for (const Slot& slot : slots_)
      if (slot.used.load(std::memory_order_acquire) && test(slot.entry)) return &slot.entry;
    return nullptr;
  }

 private:
  struct Slot {
    std::atomic<bool> used{false};
    Entry entry;
  };
  Slot slots_[kMost];
  std::mutex writers_;
};

Table<FaultRegion, kMaxFaultRegions> g_regions;
Table<FaultBlocks, kMaxFaultBlocks> g_blocks;

struct sigaction g_previous[NSIG];

// Text put together without heap or locks.
class Line {
 public:
  Line& text(const char* text) {
    while (*text != '\0' && length_ < sizeof(buffer_)) buffer_[length_++] = *text++;
    return *this;
  }
  Line& number(uint64_t value, unsigned base = 10) {
    char digits[24];
    int count = 0;
    do digits[count++] = "0123456789abcdef"[value % base];
    while ((value /= base) != 0);
    while (count > 0 && length_ < sizeof(buffer_)) buffer_[length_++] = digits[--count];
    return *this;
  }
  Line& address(uintptr_t value) { return text("0x").number(value, 16); }
  void print() const { [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, buffer_, length_); }

 private:
  char buffer_[1024];
  size_t length_ = 0;
};

const FaultRegion* find_region(uintptr_t address) {
  return g_regions.find([address](const FaultRegion& region) { return address - region.begin < region.bytes; });
}

BlockHistory find_block(uintptr_t device_address) {
  BlockHistory block;
  g_blocks.find([&](const FaultBlocks& blocks) {
    block = blocks.history(blocks.owner, device_address);
    return block.bytes != 0;
  });
  return block;
}

void describe_place(Line& line, uintptr_t device_address, const AllocationHistory& allocation) {
  if (allocation.bytes == 0) {
    line.text("nothing was ever allocated there.\n");
    return;
  }
  if (const BlockHistory block = find_block(device_address); block.bytes != 0) {
    line.number(device_address - block.base).text(" bytes into the ").text(block.live ? "" : "freed ");
    line.text("block at ").address(block.base).text(" (").number(block.bytes).text(" bytes, stream ");
    line.number(static_cast<uint64_t>(block.stream)).text("), ");
  }
  line.number(device_address - allocation.base).text(" bytes into the ").text(allocation.live ? "" : "freed ");
  line.text("allocation at ").address(allocation.base).text(" (").number(allocation.bytes).text(" bytes).\n");
}

void describe_address(Line& line, int signal, uintptr_t address, const FaultRegion& region) {
  const bool by_host = current_task() == nullptr;
  const uintptr_t device_address = address - region.begin + region.device_begin;
  const AllocationHistory found = region.history(region.owner, device_address);
  line.text("npu fatal: ").text(name_of(signal)).text(by_host ? ": host code touched " : ": a task touched ");
  line.address(device_address).text(", memory of npu:").number(static_cast<uint64_t>(found.device)).text(": ");
  describe_place(line, device_address, found);
  if (by_host) {
    line.text("npu fatal: device memory cannot be read or written by the host. Copy it with tensor.cpu() or ");
    line.text("tensor.copy_(); NPU_SIM_UNIFIED_MEMORY=1 lets the host reach it, for debugging.\n");
  } else if (region.kind == FaultRegion::Kind::kDevice) {
    line.text("npu fatal: the task used a device address that it had not translated.\n");
  } else {
    line.text("npu fatal: the task went outside its operands, or an operand was freed while the task was queued.\n");
  }
}

void describe_task(Line& line, int signal, const CurrentTask& task) {
  line.text("npu fatal: ").text(name_of(signal)).text(" while npu:").number(static_cast<uint64_t>(task.device));
  line.text(" stream ").number(static_cast<uint64_t>(task.stream)).text(" ran task ").number(task.number);
  line.text(", ").text(task.name).text(".\n");
}

void report(int signal, const siginfo_t* info) {
  Line line;
  const bool from_instruction = info->si_code > 0;  // otherwise sent by kill() and the like; si_addr is meaningless
  const uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
  const bool has_address = from_instruction && (signal == SIGSEGV || signal == SIGBUS);
  if (const FaultRegion* region = has_address ? find_region(address) : nullptr)
    describe_address(line, signal, address, *region);
  if (const CurrentTask* task = current_task()) describe_task(line, signal, *task);
  line.print();
}

// Hands the signal to whoever had it before us.
void chain(int signal, siginfo_t* info, void* context) {
  const struct sigaction& previous = g_previous[signal];
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    // The default action needs no handler on the stack: the faulting instruction runs again, or the signal is sent again.
    struct sigaction standard{};
    standard.sa_handler = previous.sa_handler;
    sigaction(signal, &standard, nullptr);
    if (info->si_code <= 0) raise(signal);
  }
}

void on_fatal_signal(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  report(signal, info);
  chain(signal, info, context);
  errno = saved_errno;
}

}  // namespace

void install_fault_report() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const int signal : kSignals) {
      struct sigaction action{};
      action.sa_sigaction = on_fatal_signal;
      action.sa_flags =
          SA_SIGINFO | SA_ONSTACK;  // a stack overflow is reported on the thread's alternate stack, if any
      sigemptyset(&action.sa_mask);
      sigaction(signal, nullptr, &g_previous[signal]);  // before ours can run
      sigaction(signal, &action, nullptr);
    }
  });
}

void add_fault_region(const FaultRegion& region) { g_regions.add(region); }
void remove_fault_regions(const void* owner) noexcept { g_regions.remove(owner); }
void add_fault_blocks(const FaultBlocks& blocks) { g_blocks.add(blocks); }
void remove_fault_blocks(const void* owner) noexcept { g_blocks.remove(owner); }

}  // namespace npu
