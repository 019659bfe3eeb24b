#include "aten/ops/custom_operator.h"

#include "aten/ops/environment.h"

namespace npu::aten {
namespace {

// Cuts a task into tiles that have one OpenMP thread each, so that results do not depend on which thread takes a tile.
class SingleThreadedTiles final : public TaskExecutor {
 public:
  explicit SingleThreadedTiles(const TaskContext& task) : task_(task) {}
  const void* translate(const TaskContext&, const void* address) const override { return task_.translate(address); }
  void run_tiles(const TaskContext&, int64_t tiles, TileFunction function, void* closure) override {
    task_.parallel_for(tiles, [&](int64_t tile) {
      const ThreadWidth single(1);
      function(closure, tile);
    });
  }

 private:
  const TaskContext& task_;
};

}  // namespace

// Not inlineable: a function of someone else's may block, and the launching thread may hold what it waits for.
KernelBase::KernelBase(const char* name, void (*run)(const TaskContext&, const void*), EngineMask engines)
    : info_{.name = name, .run = run, .engines = engines, .flags = kUsesEnvironment, .visit = visit_block},
      counters_(op_counters(name)) {}

void KernelBase::check_output(std::string_view argument, const at::Tensor& tensor) const {
  TORCH_CHECK(tensor.defined(), info_.name, ": ", argument, " is written and must be an npu tensor, but is undefined");
  TORCH_CHECK(tensor.device().is_privateuseone(), info_.name, ": ", argument,
              " is written and must be on npu, but is on ", tensor.device());
}

void KernelBase::launch(ArgumentWriter& arguments) const {
  const OpScope scope(counters_, Route::kKernel);
  arguments.launch(info_, Rehearsal::kNo);
}

void KernelBase::run(const TaskContext& context, const void* block, void (*body)(ArgumentReader&)) {
  const ThreadWidth width(static_cast<const BlockHeader*>(block)->width);
  SingleThreadedTiles tiles(context);
  const TaskContext cut_by_us = context.through(tiles);
  ArgumentReader arguments(cut_by_us, block);
  body(arguments);
  arguments.finish();
}

}  // namespace npu::aten
