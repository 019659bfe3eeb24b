// PyTorch's settings of caching allocators: PYTORCH_ALLOC_CONF, PYTORCH_NPU_ALLOC_CONF and later changes.
//
// PyTorch parses them and applies what concerns pinned memory; the rest is handed to the runtime as plain numbers. What
// PyTorch would ignore, or report without naming the value, is refused here first.
#include <c10/core/AllocatorConfig.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <optional>
#include <string_view>

#include "aten/bridge/allocator.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/log.h"
#include "runtime/memory/allocator_options.h"
#include "runtime/memory/caching_allocator.h"
#include "runtime/status.h"

namespace npu::aten {
namespace {

using TorchConfig = c10::CachingAllocator::AcceleratorAllocatorConfig;

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <size_t kLeast>
bool is_mebibytes(std::string_view value) {
  constexpr size_t kMost = size_t{1} << 30;
  const auto mebibytes = number<size_t>(value);
  return mebibytes && *mebibytes >= kLeast && *mebibytes <= kMost;
}

bool is_fraction(std::string_view value) {
  const auto fraction = number<double>(value);
  return fraction && *fraction > 0 && *fraction < 1;
}

bool is_boolean(std::string_view value) { return value == "True" || value == "False"; }

bool is_power_of_two(std::string_view value) {
  const auto whole = number<size_t>(value);
  return whole && *whole != 0 && (*whole & (*whole - 1)) == 0;
}

// Cuts the first piece off a list; a comma inside brackets does not end it.
std::string_view next_piece(std::string_view& list) {
  size_t end = 0;
  for (bool inside = false; end < list.size() && (inside || list[end] != ','); ++end)
    if (list[end] == '[' || list[end] == ']') inside = list[end] == '[';
  const std::string_view piece = list.substr(0, end);
  list.remove_prefix(std::min(end + 1, list.size()));
  return piece;
}

std::pair<std::string_view, std::string_view> at_colon(std::string_view text) {
  const size_t colon = std::min(text.find(':'), text.size());
  return {text.substr(0, colon), text.substr(std::min(colon + 1, text.size()))};
}

bool is_divisions(std::string_view value) {
  if (!value.starts_with('[')) return is_power_of_two(value);
  if (!value.ends_with(']') || value.size() == 2) return false;
  for (std::string_view list = value.substr(1, value.size() - 2); !list.empty();) {
    const auto [size, divisions] = at_colon(next_piece(list));
    if (!(size == ">" || is_power_of_two(size)) || !(divisions == "0" || is_power_of_two(divisions))) return false;
  }
  return true;
}

struct Setting {
  std::string_view key;
  std::string_view expected;
  bool (*is_right)(std::string_view value);
};

constexpr Setting kSettings[] = {
    {"max_split_size_mb", "a whole number of MiB, 20 or more", is_mebibytes<20>},
    {"max_non_split_rounding_mb", "a whole number of MiB, 20 or more", is_mebibytes<20>},
    {"large_segment_size_mb", "a whole number of MiB above 10", is_mebibytes<11>},
    {"garbage_collection_threshold", "a number between 0 and 1, such as 0.8", is_fraction},
    {"roundup_power2_divisions", "a power of two, or one for each range of sizes in MiB, such as [256:1,512:2,>:4]",
     is_divisions},
    {"expandable_segments", "True or False", is_boolean},
    {"pinned_max_round_threshold_mb", "a whole number of MiB", is_mebibytes<0>},
    {"pinned_max_cached_size_mb", "a whole number of MiB", is_mebibytes<0>},
    {"pinned_use_background_threads", "True or False", is_boolean},
};

void check_setting(const std::string& variable, const std::string& settings, std::string_view piece) {
  const auto [key, value] = at_colon(piece);
  std::string keys;
  for (const Setting& setting : kSettings) {
    keys += npu::detail::concat(keys.empty() ? "" : ", ", setting.key);
    if (key != setting.key) continue;
    NPU_CHECK(setting.is_right(value), kInvalidArgument, variable, "=", settings, " cannot be used: ", key, " is '",
              value, "', expected ", setting.expected, ".");
    return;
  }
  NPU_THROW(kInvalidArgument, variable, "=", settings, " cannot be used: there is no setting '", key,
            "'. Expected pairs key:value, separated by commas, of the settings ", keys, ".");
}

std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

// Once it has succeeded; an error comes again with each call.
void apply_environment() {
  static const bool applied [[maybe_unused]] = [] {
    constexpr const char* kOwn = "PYTORCH_NPU_ALLOC_CONF";
    constexpr const char* kCommon = "PYTORCH_ALLOC_CONF";
    const std::optional<std::string> own = variable(kOwn), common = variable(kCommon);
    NPU_CHECK(!own || !common || *own == *common, kInvalidArgument, kOwn, "=", *own, " and ", kCommon, "=", *common,
              " contradict each other; they mean the same. Set one of them.");
    if (common) check_allocator_settings(kCommon, *common);
    if (own) check_allocator_settings(kOwn, *own);
    try {
      TorchConfig& config = TorchConfig::instance();  // reads PYTORCH_ALLOC_CONF
      if (own) config.parseArgs(*own);
    } catch (const c10::Error& error) {  // settings that do not go together
      NPU_THROW(kInvalidArgument, common ? kCommon : kOwn, "=", common ? *common : own.value_or(""),
                " cannot be used: ", error.what_without_backtrace());
    }
    return true;
  }();
}

void warn_of_expandable_segments() {
  static const bool warned [[maybe_unused]] = [] {
    log(LogLevel::kWarning,
        "expandable_segments:True has no effect on npu: a segment's memory comes and goes as a whole. "
        "max_split_size_mb "
        "and garbage_collection_threshold limit fragmentation.");
    return true;
  }();
}

AllocatorOptions options_of_torch() {
  if (TorchConfig::use_expandable_segments()) warn_of_expandable_segments();
  AllocatorOptions options;
  options.large_segment_bytes = TorchConfig::large_segment_size();
  options.max_split_bytes = TorchConfig::max_split_size();
  options.max_non_split_rounding_bytes = TorchConfig::max_non_split_rounding_size();
  options.garbage_collection_threshold = TorchConfig::garbage_collection_threshold();
  const std::vector<size_t>& divisions = TorchConfig::roundup_power2_divisions();
  std::copy_n(divisions.begin(), std::min(divisions.size(), options.roundup_power2_divisions.size()),
              options.roundup_power2_divisions.begin());
  return options;
}

AllocatorOptions initial_options() {
  apply_environment();
  return options_of_torch();
}

// PyTorch has changed its settings.
void update_allocators(const std::string&) {
  const AllocatorOptions options = options_of_torch();
  for (DeviceIndex device = 0; npu::is_initialized() && device < npu::device_count(); ++device)
    if (npu::has_primary_context(device)) primary_context(device).allocator().set_options(options);
}

// PyTorch reads its variable before the hook is there: from then on it refuses what it does not know, and
// PYTORCH_CUDA_ALLOC_CONF, which it falls back to, may hold settings of another device.
const bool g_registered = [] {
  set_allocator_options_source(initial_options);
  try {
    apply_environment();
  } catch (const std::exception&) {  // reported by the first call that needs a device
  }
  TorchConfig::registerDeviceConfigParserHook(update_allocators, {});
  return true;
}();

}  // namespace

void check_allocator_settings(const std::string& source, const std::string& settings) {
  std::string text;
  std::copy_if(settings.begin(), settings.end(), std::back_inserter(text),
               [](char c) { return c != ' ' && c != '\t'; });
  for (std::string_view list = text; !list.empty();) check_setting(source, settings, next_piece(list));
}

}  // namespace npu::aten
