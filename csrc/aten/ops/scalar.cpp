// One element: for the host to read (.item()), or for the device to check (_assert_async).
#include <ATen/core/Tensor.h>
#include <ATen/Dispatch_v2.h>
#include <c10/core/Scalar.h>
#include <torch/library.h>

#include <cstring>

#include "aten/bridge/errors.h"
#include "aten/bridge/stream.h"
#include "aten/bridge/sync_debug_mode.h"
#include "aten/ops/counted.h"
#include "runtime/driver/driver.h"

namespace npu::aten {
namespace {

// Waits for the current stream and reports the device's first pending error, as every synchronising call does.
at::Scalar local_scalar_dense(const at::Tensor& self) {
  TORCH_CHECK(self.numel() == 1, "a tensor with ", self.numel(), " elements cannot be converted to a number");
  const SynchronizingCall call(op::_local_scalar_dense.wait_cause);
  const void* address = translate_errors([&] {
    current_stream(self.get_device()).synchronize();
    return npu::driver().translate(self.const_data_ptr());
  });
  return AT_DISPATCH_V2(self.scalar_type(), "_local_scalar_dense", AT_WRAP([&] {
                          scalar_t value;
                          std::memcpy(&value, address, sizeof value);
                          return at::Scalar(value);
                        }),
                        AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
                        AT_EXPAND(AT_FLOAT8_TYPES), at::kComplexHalf, at::kHalf, at::kBool, at::kBFloat16);
}

struct Assertion {
  static constexpr size_t kMaxMessageBytes = 1024;
  const bool* condition;
  char message[kMaxMessageBytes];  // ends with a zero
};

constexpr TaskInfo kAssert{
    .name = "aten::_assert_async",
    .run =
        [](const TaskContext& context, const void* arguments) {
          const auto& assertion = *static_cast<const Assertion*>(arguments);
          TORCH_CHECK(*context.translate(assertion.condition), assertion.message);
        },
    .visit =
        [](void* arguments, OperandVisitor& visitor) {
          auto& assertion = *static_cast<Assertion*>(arguments);
          visitor.visit({.name = "self",
                         .address = const_cast<void**>(reinterpret_cast<const void**>(&assertion.condition)),
                         .dtype = "bool",
                         .bytes = sizeof(bool)});
        },
};

// A failed assertion is an error of the device, which the next synchronising call reports.
void assert_async_with_message(const at::Tensor& self, std::string_view message) {
  TORCH_CHECK(self.numel() == 1, "Boolean value of Tensor with ", self.numel(), " values is ambiguous");
  const at::Tensor condition = self.to(at::kBool);
  Assertion assertion{};
  assertion.condition = condition.const_data_ptr<bool>();
  message = message.substr(0, Assertion::kMaxMessageBytes - 1);
  message.copy(assertion.message, message.size());
  translate_errors([&] {
    current_stream(self.get_device())
        .launch_bytes({kAssert, &assertion, offsetof(Assertion, message) + message.size() + 1, /*cost_ns=*/50});
  });
}

void assert_async(const at::Tensor& self) {
  assert_async_with_message(self, "Expected Tensor with single nonzero value, but got zero");
}

at::Tensor functional_assert_async(const at::Tensor& self, std::string_view message, const at::Tensor& token) {
  assert_async_with_message(self, message);
  return token.clone();
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_assert_async", counted<op::_assert_async, Route::kKernel, assert_async>);
  m.impl("_assert_async.msg", counted<op::_assert_async_msg, Route::kKernel, assert_async_with_message>);
  m.impl("_functional_assert_async.msg",
         counted<op::_functional_assert_async_msg, Route::kKernel, functional_assert_async>);
  m.impl("_local_scalar_dense", counted<op::_local_scalar_dense, Route::kSynchronous, local_scalar_dense>);
}

}  // namespace
}  // namespace npu::aten
