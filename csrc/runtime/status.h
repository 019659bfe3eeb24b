// Errors of the runtime: one exception type, a code for programs, a message for people.
//
// Every message says what was called, on what, and what to do about it. NPU_CHECK is for conditions that a caller or the
// machine can break; NPU_ASSERT is for conditions that only a bug of ours can break.
#pragma once

#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "runtime/export.h"

namespace npu {

// The kind tells who has to act: the caller, the machine's owner, whoever keeps the files, or us.
enum class ErrorKind : uint8_t { kUser, kResource, kStorage, kInternal };

enum class ErrorCode : uint8_t {
  kInvalidArgument,  // user: a value out of range
  kInvalidDevice,    // user: no such device
  kInvalidAddress,   // user: an address that is not memory of the device that used it
  kInvalidState,     // user: the call is not allowed now (forked child, destroyed object)
  kTaskFailed,       // user: a task threw; the message carries its context
  kOutOfMemory,      // resource
  kLimit,            // resource: an operating-system limit refused what we need
  kTimeout,          // resource: a wait ran past its deadline
  kDeviceLost,       // resource: sticky until the device is reset
  kStorage,          // storage: a file could not be read or written
  kInternal,         // internal: please report
};

NPU_API ErrorKind kind_of(ErrorCode code);
NPU_API std::string_view to_string(ErrorCode code);

class NPU_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

  ErrorCode code() const noexcept { return code_; }
  ErrorKind kind() const noexcept { return kind_of(code_); }

 private:
  ErrorCode code_;
};

namespace detail {
template <class... Args>
std::string concat(const Args&... args) {
  std::ostringstream out;
  ((out << args), ...);
  return out.str();
}
[[noreturn]] NPU_API void throw_error(ErrorCode code, const std::string& message);
[[noreturn]] NPU_API void assertion_failed(const char* condition, const char* file, int line,
                                           const std::string& message);
}  // namespace detail

#define NPU_CHECK(condition, code, ...)                                                       \
  do {                                                                                        \
    if (!(condition)) [[unlikely]]                                                            \
      ::npu::detail::throw_error(::npu::ErrorCode::code, ::npu::detail::concat(__VA_ARGS__)); \
  } while (false)

#define NPU_THROW(code, ...) ::npu::detail::throw_error(::npu::ErrorCode::code, ::npu::detail::concat(__VA_ARGS__))

#define NPU_ASSERT(condition, ...)                                                                            \
  do {                                                                                                        \
    if (!(condition)) [[unlikely]]                                                                            \
      ::npu::detail::assertion_failed(#condition, __FILE__, __LINE__, ::npu::detail::concat("" __VA_ARGS__)); \
  } while (false)

}  // namespace npu
