#include "runtime/status.h"

namespace npu {

ErrorKind kind_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kInvalidDevice:
    case ErrorCode::kInvalidAddress:
    case ErrorCode::kInvalidState:
    case ErrorCode::kTaskFailed: return ErrorKind::kUser;
    case ErrorCode::kOutOfMemory:
    case ErrorCode::kLimit:
    case ErrorCode::kTimeout:
    case ErrorCode::kDeviceLost: return ErrorKind::kResource;
    case ErrorCode::kStorage: return ErrorKind::kStorage;
    case ErrorCode::kInternal: break;
  }
  return ErrorKind::kInternal;
}

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid argument";
    case ErrorCode::kInvalidDevice: return "invalid device";
    case ErrorCode::kInvalidAddress: return "invalid address";
    case ErrorCode::kInvalidState: return "invalid state";
    case ErrorCode::kTaskFailed: return "task failed";
    case ErrorCode::kOutOfMemory: return "out of memory";
    case ErrorCode::kLimit: return "system limit";
    case ErrorCode::kTimeout: return "timeout";
    case ErrorCode::kDeviceLost: return "device lost";
    case ErrorCode::kStorage: return "storage";
    case ErrorCode::kInternal: break;
  }
  return "internal error";
}

namespace detail {

void throw_error(ErrorCode code, const std::string& message) { throw Error(code, message); }

void assertion_failed(const char* condition, const char* file, int line, const std::string& message) {
  throw Error(ErrorCode::kInternal,
              concat("torch_npu_lite internal error: `", condition, "` does not hold at ", file, ":", line, ": ",
                     message, ". This is a bug in torch_npu_lite; please report it with the program that shows it."));
}

}  // namespace detail
}  // namespace npu
