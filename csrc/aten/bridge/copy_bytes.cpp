#include "aten/bridge/copy_bytes.h"

#include "kernels/copy.h"

namespace npu::aten {

void copy_bytes(Stream& stream, void* destination, const void* source, size_t bytes) {
  if (bytes > 0) stream.launch(kernels::kCopyWithin, kernels::CopyArguments{destination, source, bytes});
}

}  // namespace npu::aten
