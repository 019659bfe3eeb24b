#include "runtime/machine_memory.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

namespace npu {
namespace {

constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();
constexpr size_t kMiB = size_t{1} << 20, kGiB = size_t{1} << 30;

// The number in a file such as memory.max; kUnlimited when it holds "max" or cannot be read.
size_t read_limit(const std::string& path) {
  size_t bytes = 0;
  return std::ifstream(path) >> bytes ? bytes : kUnlimited;
}

// MemTotal of a meminfo file, in bytes.
size_t read_total(const std::string& path) {
  std::ifstream file(path);
  std::string key, unit;
  for (size_t kib = 0; file >> key >> kib; std::getline(file, unit))
    if (key == "MemTotal:") return kib << 10;
  return kUnlimited;
}

// The lowest limit from a group up to the root of the hierarchy mounted at `mount`.
size_t lowest_limit(const std::string& mount, std::string group, const char* file) {
  size_t lowest = kUnlimited;
  for (;; group.erase(group.find_last_of('/'))) {
    if (group == "/") group.clear();
    lowest = std::min(lowest, read_limit(mount + group + "/" + file));
    if (group.empty()) return lowest;
  }
}

}  // namespace

size_t machine_memory(const std::string& root) {
  size_t bytes = read_total(root + "/proc/meminfo");
  // Lines of "hierarchy:controllers:/group"; version 2 has hierarchy 0 and no controllers.
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (group.empty() || group.front() != '/') continue;
    if (controllers == ",,") bytes = std::min(bytes, lowest_limit(root + "/sys/fs/cgroup", group, "memory.max"));
    if (controllers.find(",memory,") != std::string::npos)
      bytes = std::min(bytes, lowest_limit(root + "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
  }
  return bytes == kUnlimited ? 4 * kGiB : bytes;
}

size_t default_device_memory(size_t machine_bytes) {
  const size_t quarter = machine_bytes / 4;
  const size_t unit = quarter >= kGiB ? kGiB : 256 * kMiB;
  return std::max(unit, quarter / unit * unit);
}

}  // namespace npu
