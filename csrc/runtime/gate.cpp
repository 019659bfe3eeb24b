#include "runtime/gate.h"

#include "runtime/context.h"

namespace npu {

Gate::Gate(Stream& stream) : driver_(stream.context().driver()), signal_(driver_.create_signal()) {
  stream.wait_value(signal_, 1);
}

Gate::~Gate() {
  open();
  driver_.destroy_signal(signal_);
}

void Gate::open() { driver_.write(signal_, 1); }

}  // namespace npu
