// What an exception says in reports. A layer above may know better than what(), which for PyTorch's exceptions includes
// pages of native stack.
#pragma once

#include <exception>
#include <string>

#include "runtime/export.h"

namespace npu {

using ErrorText = std::string (*)(const std::exception& error);
NPU_API void set_error_text(ErrorText text);

NPU_API std::string error_text(const std::exception_ptr& error);

}  // namespace npu
