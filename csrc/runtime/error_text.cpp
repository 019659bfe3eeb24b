#include "runtime/error_text.h"

#include <atomic>

namespace npu {
namespace {

std::atomic<ErrorText> g_text{nullptr};

}  // namespace

void set_error_text(ErrorText text) { g_text.store(text, std::memory_order_release); }

std::string error_text(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    const ErrorText text = g_text.load(std::memory_order_acquire);
    return text == nullptr ? exception.what() : text(exception);
  } catch (...) {  // a task may throw anything
    return "an exception that is not a std::exception";
  }
}

}  // namespace npu
