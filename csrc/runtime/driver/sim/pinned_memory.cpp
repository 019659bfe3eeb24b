#include "runtime/driver/sim/pinned_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <mutex>

#include "runtime/driver/sim/address_window.h"
#include "runtime/status.h"

namespace npu {
namespace {

constexpr size_t kHugePage = AddressWindow::kGranuleBytes;
constexpr int kProtection = PROT_READ | PROT_WRITE;
constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;

size_t page_bytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// One touch for each page; with huge pages all but the first in 2 MiB are cheap.
void touch(char* begin, size_t bytes) {
  for (size_t offset = 0; offset < bytes; offset += page_bytes()) const_cast<volatile char*>(begin)[offset] = 0;
}

void* map_small(size_t bytes) {
  void* address = mmap(nullptr, bytes, kProtection, kFlags | MAP_POPULATE, -1, 0);
  return address == MAP_FAILED ? nullptr : address;
}

// Huge pages need their alignment; the surplus around the aligned part is given back.
void* map_large(size_t bytes) {
  void* raw = mmap(nullptr, bytes + kHugePage, kProtection, kFlags, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(raw);
  const size_t head = round_up(reinterpret_cast<uintptr_t>(begin), kHugePage) - reinterpret_cast<uintptr_t>(begin);
  if (head != 0) munmap(begin, head);
  if (head != kHugePage) munmap(begin + head + bytes, kHugePage - head);
  madvise(begin + head, bytes, MADV_HUGEPAGE);
  touch(begin + head, bytes);
  return begin + head;
}

}  // namespace

PinnedMemory::~PinnedMemory() {
  for (const auto& [base, block] : blocks_) munmap(reinterpret_cast<void*>(base), block.mapped_bytes);
}

void* PinnedMemory::allocate(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  bytes = std::max<size_t>(bytes, 1);
  const size_t mapped = round_up(bytes, page_bytes());
  void* const address = mapped < kHugePage ? map_small(mapped) : map_large(mapped);
  if (address == nullptr) return nullptr;
  std::unique_lock lock(mutex_);
  blocks_.emplace(reinterpret_cast<uintptr_t>(address), Block{bytes, mapped});
  return address;
}

void PinnedMemory::free(void* address) {
  size_t mapped = 0;
  {
    std::unique_lock lock(mutex_);
    const auto found = blocks_.find(reinterpret_cast<uintptr_t>(address));
    NPU_CHECK(found != blocks_.end(), kInvalidAddress, "freeing pinned host memory at ", address,
              ": no live pinned block begins there. Free exactly the address that the allocation returned, once.");
    mapped = found->second.mapped_bytes;
    blocks_.erase(found);
  }
  munmap(address, mapped);
}

MemoryLocation PinnedMemory::locate(const void* address) const {
  const uintptr_t wanted = reinterpret_cast<uintptr_t>(address);
  std::shared_lock lock(mutex_);
  const auto after = blocks_.upper_bound(wanted);
  if (after == blocks_.begin()) return {};
  const auto& [base, block] = *std::prev(after);
  if (wanted - base >= block.bytes) return {};
  return {MemoryLocation::Kind::kPinned, -1, reinterpret_cast<const void*>(base), block.bytes};
}

}  // namespace npu
