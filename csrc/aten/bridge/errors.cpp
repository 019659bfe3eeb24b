#include "aten/bridge/errors.h"

#include <c10/util/Exception.h>

#include "runtime/error_text.h"

namespace npu::aten {
namespace {

std::string without_native_stack(const std::exception& error) {
  const auto* const of_pytorch = dynamic_cast<const c10::Error*>(&error);
  return of_pytorch != nullptr ? of_pytorch->what_without_backtrace() : error.what();
}

const bool registered = [] {
  set_error_text(without_native_stack);
  return true;
}();

}  // namespace

void throw_translated(const Error& error) {
  const c10::SourceLocation here{__func__, __FILE__, static_cast<uint32_t>(__LINE__)};
  switch (error.code()) {
    case ErrorCode::kOutOfMemory: throw c10::OutOfMemoryError(here, error.what());
    case ErrorCode::kTaskFailed:
    case ErrorCode::kDeviceLost:
    case ErrorCode::kTimeout:
    case ErrorCode::kInvalidDevice:
    case ErrorCode::kInvalidAddress:
      throw c10::AcceleratorError(here, static_cast<int32_t>(error.code()), error.what());
    case ErrorCode::kInvalidArgument: throw c10::ValueError(here, error.what());
    default: throw c10::Error(here, error.what());
  }
}

}  // namespace npu::aten
