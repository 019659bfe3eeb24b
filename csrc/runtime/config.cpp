#include "runtime/config.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "runtime/status.h"

namespace npu {
namespace {

// One variable that is set. Each parser returns a usable value or throws.
struct Setting {
  const char* name;
  std::string value;

  [[noreturn]] void refuse(const std::string& expected) const {
    NPU_THROW(kInvalidArgument, name, "=", value, " cannot be used: expected ", expected, ".");
  }

  bool boolean() const {
    if (value == "1" || value == "true") return true;
    if (value == "0" || value == "false") return false;
    refuse("0 or 1");
  }

  std::optional<int> whole_number() const {
    int number = 0;
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, number);
    return error == std::errc{} && stop == end ? std::optional(number) : std::nullopt;
  }

  int whole(int least, int most) const {
    const std::optional<int> number = whole_number();
    if (!number || *number < least || *number > most)
      refuse(detail::concat("a whole number from ", least, " to ", most));
    return *number;
  }

  int power_of_two(int least, int most) const {
    const std::optional<int> number = whole_number();
    if (!number || *number < least || *number > most || !std::has_single_bit(static_cast<unsigned>(*number)))
      refuse(detail::concat("a power of two from ", least, " to ", most));
    return *number;
  }

  double seconds() const {
    const auto [number, rest] = leading_number();
    if (!(number >= 0 && std::isfinite(number)) || !rest.empty()) refuse("a number of seconds, 0 or more");
    return number;
  }

  size_t bytes(size_t least, size_t most) const {
    const auto [number, rest] = leading_number();
    static constexpr std::string_view kSuffixes = "KMGT";
    const size_t power = rest.size() == 1 ? kSuffixes.find(static_cast<char>(std::toupper(rest[0]))) : kSuffixes.npos;
    const double unit = rest.empty() ? 1 : power == kSuffixes.npos ? NAN : std::exp2(10.0 * (power + 1));
    const double bytes = number * unit;
    if (!(bytes >= static_cast<double>(least) && bytes <= static_cast<double>(most)))
      refuse(detail::concat("a size from ", least >> 20, "M to ", most >> 40, "T, such as 512M or 1.5G"));
    return static_cast<size_t>(bytes);
  }

  template <class T>
  T one_of(std::initializer_list<std::pair<std::string_view, T>> choices) const {
    std::string names;
    for (const auto& [word, choice] : choices) {
      if (value == word) return choice;
      names += detail::concat(names.empty() ? "" : ", ", word);
    }
    refuse("one of " + names);
  }

  // "0,2" -> {0, 2}; empty -> none.
  std::vector<int> devices() const {
    static constexpr int kMostDevices = 64;
    std::vector<int> list;
    for (size_t begin = 0; begin < value.size();) {
      const size_t end = std::min(value.find(',', begin), value.size());
      std::string_view word = std::string_view(value).substr(begin, end - begin);
      while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
      while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
      int device = -1;
      const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), device);
      if (error != std::errc{} || stop != word.data() + word.size() || device < 0 || device >= kMostDevices ||
          std::find(list.begin(), list.end(), device) != list.end())
        refuse("different device numbers separated by commas, such as 0,1; empty for none");
      list.push_back(device);
      begin = end + 1;
    }
    return list;
  }

 private:
  // The number at the start of the value (NaN when there is none) and what follows it.
  std::pair<double, std::string_view> leading_number() const {
    double number = NAN;
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, number, std::chars_format::fixed);
    if (error != std::errc{}) number = NAN;
    return {number, {stop, static_cast<size_t>(end - stop)}};
  }
};

struct Variable {
  const char* name;
  const char* alias;  // the same under another name; null = none
  void (*apply)(Config& config, const Setting& setting);
  bool empty_is_a_value = false;  // otherwise an empty variable counts as not set
};

constexpr size_t kMiB = size_t{1} << 20, kTiB = size_t{1} << 40;

// In the order of docs/configuration.md.
const Variable kVariables[] = {
    {"NPU_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES",
     [](Config& config, const Setting& setting) { config.visible_devices = setting.devices(); }, true},
    {"NPU_LAUNCH_BLOCKING", "ASCEND_LAUNCH_BLOCKING",
     [](Config& config, const Setting& setting) { config.launch_blocking = setting.boolean(); }},
    {"NPU_LOG_LEVEL", nullptr,
     [](Config& config, const Setting& setting) {
       config.log_level = setting.one_of<LogLevel>({{"error", LogLevel::kError},
                                                    {"warning", LogLevel::kWarning},
                                                    {"info", LogLevel::kInfo},
                                                    {"debug", LogLevel::kDebug}});
     }},
    {"NPU_TRACEBACK", nullptr, [](Config& config, const Setting& setting) { config.traceback = setting.boolean(); }},
    {"NPU_FALLBACK", nullptr,
     [](Config& config, const Setting& setting) {
       config.fallback = setting.one_of<FallbackMode>(
           {{"allow", FallbackMode::kAllow}, {"warn", FallbackMode::kWarn}, {"error", FallbackMode::kError}});
     }},
    {"NPU_FAULT_REPORT", nullptr,
     [](Config& config, const Setting& setting) { config.fault_report = setting.boolean(); }},
    {"NPU_HANG_REPORT_S", nullptr,
     [](Config& config, const Setting& setting) { config.hang_report_s = setting.seconds(); }},
    {"NPU_EXIT_TIMEOUT_S", nullptr,
     [](Config& config, const Setting& setting) { config.exit_timeout_s = setting.seconds(); }},
    {"NPU_SIM_DEVICES", nullptr,
     [](Config& config, const Setting& setting) { config.sim.devices = setting.whole(1, 64); }},
    {"NPU_SIM_MEMORY", nullptr,
     [](Config& config, const Setting& setting) { config.sim.memory_bytes = setting.bytes(2 * kMiB, kTiB); }},
    {"NPU_SIM_WINDOW", nullptr,
     [](Config& config, const Setting& setting) { config.sim.window_bytes = setting.bytes(2 * kMiB, 4 * kTiB); }},
    {"NPU_SIM_WORKERS", nullptr,
     [](Config& config, const Setting& setting) { config.sim.workers = setting.whole(0, 1024); }},
    {"NPU_SIM_CUBE_CORES", nullptr,
     [](Config& config, const Setting& setting) { config.sim.cube_cores = setting.whole(1, 1024); }},
    {"NPU_SIM_VECTOR_CORES", nullptr,
     [](Config& config, const Setting& setting) { config.sim.vector_cores = setting.whole(1, 1024); }},
    {"NPU_SIM_DMA_IN_ENGINES", nullptr,
     [](Config& config, const Setting& setting) { config.sim.dma_in_engines = setting.whole(1, 64); }},
    {"NPU_SIM_DMA_OUT_ENGINES", nullptr,
     [](Config& config, const Setting& setting) { config.sim.dma_out_engines = setting.whole(1, 64); }},
    {"NPU_SIM_QUEUE_DEPTH", nullptr,
     [](Config& config, const Setting& setting) { config.sim.queue_depth = setting.power_of_two(16, 65536); }},
    {"NPU_SIM_INLINE", nullptr,
     [](Config& config, const Setting& setting) { config.sim.inline_tasks = setting.boolean(); }},
    {"NPU_SIM_DETERMINISTIC", nullptr,
     [](Config& config, const Setting& setting) { config.sim.deterministic = setting.boolean(); }},
    {"NPU_SIM_UNIFIED_MEMORY", nullptr,
     [](Config& config, const Setting& setting) { config.sim.unified_memory = setting.boolean(); }},
    {"NPU_SIM_TILE_ELEMENTS", nullptr,
     [](Config& config, const Setting& setting) { config.sim.tile_elements = setting.whole(0, 1 << 30); }},
};

// Read by the build or by tools, not here.
constexpr std::string_view kOtherNames[] = {"NPU_DEPS_DIR"};

std::optional<std::string> look_up(const Environment& environment, const char* name, bool empty_is_a_value) {
  std::optional<std::string> value = environment(name);
  if (value && value->empty() && !empty_is_a_value) value.reset();
  return value;
}

void apply(Config& config, const Variable& variable, const Environment& environment) {
  const auto own = look_up(environment, variable.name, variable.empty_is_a_value);
  const auto other = variable.alias ? look_up(environment, variable.alias, variable.empty_is_a_value) : std::nullopt;
  NPU_CHECK(!own || !other || *own == *other, kInvalidArgument, variable.name, "=", *own, " and ", variable.alias, "=",
            *other, " contradict each other; they mean the same. Set one of them.");
  if (own || other) variable.apply(config, {own ? variable.name : variable.alias, own ? *own : *other});
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

Config read_process_config() {
  const Config config = read_config([](const char* name) -> std::optional<std::string> {
    const char* const value = std::getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  });
  set_log_level(config.log_level);
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    names.emplace_back(std::string_view(*entry).substr(0, std::string_view(*entry).find('=')));
  for (const std::string& warning : unknown_variables(names)) log(LogLevel::kWarning, warning);
  return config;
}

}  // namespace

Config read_config(const Environment& environment) {
  Config config;
  for (const Variable& variable : kVariables) apply(config, variable, environment);
  const SimOptions& sim = config.sim;
  NPU_CHECK(sim.window_bytes == 0 || sim.window_bytes >= sim.memory_bytes, kInvalidArgument, "NPU_SIM_WINDOW is ",
            sim.window_bytes, " bytes, less than NPU_SIM_MEMORY (", sim.memory_bytes,
            " bytes); the window must hold the memory. Leave it unset for 4 x the memory.");
  return config;
}

std::vector<std::string> unknown_variables(const std::vector<std::string>& names) {
  std::vector<std::string> warnings;
  for (const std::string_view name : names) {
    const auto is_this = [name](const Variable& variable) { return name == variable.name; };
    if (!name.starts_with("NPU_") || std::any_of(std::begin(kVariables), std::end(kVariables), is_this) ||
        std::find(std::begin(kOtherNames), std::end(kOtherNames), name) != std::end(kOtherNames))
      continue;
    const auto nearest =
        std::min_element(std::begin(kVariables), std::end(kVariables), [name](const Variable& a, const Variable& b) {
          return edit_distance(name, a.name) < edit_distance(name, b.name);
        });
    warnings.push_back(detail::concat("the environment variable ", name,
                                      " is not known and has no effect; did you mean ", nearest->name,
                                      "? docs/configuration.md lists them all."));
  }
  return warnings;
}

const Config& config() {
  static const Config instance = read_process_config();
  return instance;
}

}  // namespace npu
