#include "runtime/driver/sim/engines.h"

#include <algorithm>
#include <bit>

#include "runtime/driver/sim/sim_queue.h"

namespace npu {
namespace {

template <class Call>
void for_each_engine(EngineMask mask, const Call& call) {
  for (unsigned rest = mask; rest != 0; rest &= rest - 1) call(std::countr_zero(rest));
}

}  // namespace

Engines::Engines(const std::array<int, kEngineCount>& capacities) {
  for (int engine = 0; engine < kEngineCount; ++engine) {
    units_[engine].capacity = capacities[engine];
    units_[engine].available.store(capacities[engine], std::memory_order_relaxed);
  }
}

bool Engines::try_take(Unit& unit) noexcept {
  if (unit.available.fetch_sub(1, std::memory_order_seq_cst) > 0) return true;
  unit.available.fetch_add(1, std::memory_order_seq_cst);
  return false;
}

bool Engines::acquire(SimQueue& queue, EngineMask mask) {
  if (queue.held_engines != mask || waited_for(queue.held_engines)) {
    // Units that others wait for are handed over first; units that the task does not need are given back.
    const EngineMask keep = queue.granted_engines & mask;
    for_each_engine(queue.held_engines & ~keep, [&](int engine) { give_back(engine); });
    queue.held_engines = keep;
  }
  queue.granted_engines = kNoEngine;
  for (unsigned missing = mask & ~queue.held_engines; missing != 0; missing &= missing - 1) {
    const int engine = std::countr_zero(missing);
    if (!try_take(units_[engine])) {
      release(queue);
      if (park(queue, engine)) return false;
      return acquire(queue, mask);  // a unit came free meanwhile
    }
    queue.held_engines |= static_cast<EngineMask>(1u << engine);
  }
  return true;
}

void Engines::release(SimQueue& queue) {
  const EngineMask held = queue.held_engines;
  queue.held_engines = kNoEngine;
  queue.granted_engines = kNoEngine;
  for_each_engine(held, [&](int engine) { give_back(engine); });
}

bool Engines::waited_for(EngineMask mask) const noexcept {
  bool waited = false;
  for_each_engine(mask, [&](int engine) { waited |= units_[engine].waited_for.load(std::memory_order_relaxed); });
  return waited;
}

// Pairs with give_back: either it sees waited_for, or we see the unit that it returned.
bool Engines::park(SimQueue& queue, int engine) {
  Unit& unit = units_[engine];
  MutexLock lock(unit.mutex);
  queue.set_waiting_for(static_cast<Engine>(engine));
  queue.set_state(StrandState::kParked);
  unit.waiters.push_back(&queue);
  unit.waited_for.store(true, std::memory_order_seq_cst);
  if (unit.available.load(std::memory_order_seq_cst) <= 0) return true;
  unit.waiters.pop_back();
  unit.waited_for.store(!unit.waiters.empty(), std::memory_order_seq_cst);
  queue.set_state(StrandState::kRunning);
  return false;
}

void Engines::give_back(int engine) {
  Unit& unit = units_[engine];
  unit.available.fetch_add(1, std::memory_order_seq_cst);
  if (unit.waited_for.load(std::memory_order_seq_cst)) grant_waiters(engine);
}

void Engines::grant_waiters(int engine) {
  Unit& unit = units_[engine];
  for (;;) {
    SimQueue* chosen = nullptr;
    {
      MutexLock lock(unit.mutex);
      if (unit.waiters.empty() || !try_take(unit)) return;
      auto first = std::min_element(unit.waiters.begin(), unit.waiters.end(),
                                    [](SimQueue* a, SimQueue* b) { return a->priority() < b->priority(); });
      chosen = *first;
      unit.waiters.erase(first);
      unit.waited_for.store(!unit.waiters.empty(), std::memory_order_seq_cst);
    }
    chosen->held_engines = chosen->granted_engines = static_cast<EngineMask>(1u << engine);
    chosen->resume();
  }
}

void Engines::add_busy(EngineMask mask, int64_t ns) noexcept {
  for_each_engine(mask, [&](int engine) {
    units_[engine].busy_ns.fetch_add(ns, std::memory_order_relaxed);
    units_[engine].tasks.fetch_add(1, std::memory_order_relaxed);
  });
}

EngineUsage Engines::usage(Engine engine) const noexcept {
  const Unit& unit = units_[static_cast<int>(engine)];
  return {unit.capacity, unit.busy_ns.load(std::memory_order_relaxed), unit.tasks.load(std::memory_order_relaxed)};
}

}  // namespace npu
