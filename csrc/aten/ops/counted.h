// Registers a function that exists, PyTorch's own included, as an entry that op_stats() counts.
//   m.impl("view", counted<OpId::view, Route::kView, at::native::view>);
#pragma once

#include <utility>

#include "aten/ops/op_stats.h"

namespace npu::aten {

template <OpId op, Route route, auto function>
struct Counted;

template <OpId op, Route route, class Result, class... Arguments, Result (*function)(Arguments...)>
struct Counted<op, route, function> {
  static Result call(Arguments... arguments) {
    const OpScope scope(op, route);
    return function(std::forward<Arguments>(arguments)...);
  }
};

template <OpId op, Route route, auto function>
inline constexpr auto counted = Counted<op, route, function>::call;

}  // namespace npu::aten
