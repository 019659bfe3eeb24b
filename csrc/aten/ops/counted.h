// Registers a function that exists, PyTorch's own included, as an entry that op_stats() counts.
//   m.impl("view", counted<op::view, Route::kView, at::native::view>);
#pragma once

#include <utility>

#include "aten/ops/op_stats.h"
#include "op_counters.h"  // generated

namespace npu::aten {

template <OpCounters& op, Route route, auto function>
struct Counted;

template <OpCounters& op, Route route, class Result, class... Arguments, Result (*function)(Arguments...)>
struct Counted<op, route, function> {
  static Result call(Arguments... arguments) {
    const OpScope scope(op, route);
    return function(std::forward<Arguments>(arguments)...);
  }
};

template <OpCounters& op, Route route, auto function>
inline constexpr auto counted = Counted<op, route, function>::call;

}  // namespace npu::aten
