// Holds a stream back until the host opens the gate: a wait-value task on a signal of its own. Parks the stream, not a
// worker, so everything behind the gate is queued and nothing of it runs. The gate of every test about order.
#pragma once

#include "runtime/driver/driver.h"
#include "runtime/export.h"
#include "runtime/stream.h"

namespace npu {

class NPU_API Gate {
 public:
  explicit Gate(Stream& stream);  // closed
  ~Gate();                        // opens
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open();  // any thread; opening twice is fine
  bool is_open() const noexcept { return signal_.value() != 0; }

 private:
  Driver& driver_;
  Signal& signal_;
};

}  // namespace npu
