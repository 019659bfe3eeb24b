#include "runtime/driver/sim/address_window.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/status.h"

namespace npu {
namespace {

constexpr size_t kGranule = AddressWindow::kGranuleBytes;
constexpr size_t kLargestDefaultWindow = size_t{256} << 30;
// A default window takes at most this share of a finite `ulimit -v`: the rest of the process needs addresses as well.
constexpr size_t kShareOfAddressLimit = 16;

void* to_pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

// Bytes of `ulimit -v`; SIZE_MAX when unlimited.
size_t address_space_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return limit.rlim_cur;
}

size_t first_window_to_try(const WindowOptions& options) {
  if (options.window_bytes != 0) return options.window_bytes / kGranule * kGranule;
  size_t bytes = options.capacity_bytes;
  const size_t most = std::min(kLargestDefaultWindow, address_space_limit() / kShareOfAddressLimit);
  for (int doubling = 0; doubling < 2 && bytes <= most / 2; ++doubling) bytes *= 2;
  return bytes;
}

// Reserves `bytes` addresses aligned to a granule; 0 when the system refuses.
uintptr_t reserve(size_t bytes) {
  void* raw = mmap(nullptr, bytes + kGranule, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return 0;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(raw);
  const uintptr_t aligned = (begin + kGranule - 1) / kGranule * kGranule;
  if (aligned != begin) munmap(raw, aligned - begin);
  if (aligned != begin + kGranule) munmap(to_pointer(aligned + bytes), begin + kGranule - aligned);
  // Without DONTFORK every forked DataLoader worker would make the parent's next writes copy their pages.
  madvise(to_pointer(aligned), bytes, MADV_DONTFORK);
  madvise(to_pointer(aligned), bytes, MADV_DONTDUMP);
  return aligned;
}

void release(uintptr_t begin, size_t bytes) {
  if (begin != 0) munmap(to_pointer(begin), bytes);
}

[[noreturn]] void throw_refused(const WindowOptions& options, size_t bytes, int error) {
  const size_t limit = address_space_limit();
  const std::string reason = limit == SIZE_MAX
                                 ? detail::concat("the system refused (", std::strerror(error),
                                                  "); see vm.overcommit_memory and vm.max_map_count in sysctl")
                                 : detail::concat("the address space limit `ulimit -v` is ", limit >> 10, " KiB");
  NPU_THROW(kLimit, "reserving ", options.unified ? "" : "2 x ", bytes >> 20, " MiB of addresses for a device with ",
            options.capacity_bytes >> 20, " MiB of memory: ", reason,
            ". Raise the limit, or make the device smaller with NPU_SIM_MEMORY (for example NPU_SIM_MEMORY=1G) or "
            "NPU_SIM_DEVICES.");
}

}  // namespace

AddressWindow::AddressWindow(const WindowOptions& options) {
  NPU_ASSERT(options.capacity_bytes > 0 && options.capacity_bytes % kGranule == 0, "capacity ", options.capacity_bytes);
  bytes_ = first_window_to_try(options);
  NPU_CHECK(bytes_ >= options.capacity_bytes, kInvalidArgument, "NPU_SIM_WINDOW is ", options.window_bytes,
            " bytes, less than the ", options.capacity_bytes,
            " bytes of memory of a device; it must be at least NPU_SIM_MEMORY.");
  for (;; bytes_ = std::max(options.capacity_bytes, bytes_ / 2 / kGranule * kGranule)) {
    engine_ = reserve(bytes_);
    device_ = options.unified ? engine_ : reserve(bytes_);
    if (engine_ != 0 && device_ != 0) break;
    const int error = errno;
    release(engine_, bytes_);
    if (device_ != engine_) release(device_, bytes_);
    if (bytes_ == options.capacity_bytes || options.window_bytes != 0) throw_refused(options, bytes_, error);
  }
  madvise(to_pointer(engine_), bytes_, MADV_HUGEPAGE);
}

AddressWindow::~AddressWindow() {
  release(engine_, bytes_);
  if (device_ != engine_) release(device_, bytes_);
}

void AddressWindow::commit(size_t offset, size_t bytes) {
  NPU_CHECK(mprotect(to_pointer(engine_ + offset), bytes, PROT_READ | PROT_WRITE) == 0, kLimit, "making ", bytes >> 20,
            " MiB of device memory usable: ", std::strerror(errno),
            "; see vm.overcommit_memory and vm.max_map_count in sysctl, or use less device memory (NPU_SIM_MEMORY).");
}

void AddressWindow::decommit(size_t offset, size_t bytes) noexcept {
  madvise(to_pointer(engine_ + offset), bytes, MADV_DONTNEED);
  mprotect(to_pointer(engine_ + offset), bytes, PROT_NONE);
}

}  // namespace npu
