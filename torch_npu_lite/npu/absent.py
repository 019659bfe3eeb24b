"""What ``torch.cuda`` has and ``torch.npu`` does not, and why."""

_GRAPHS = "recorded graphs are not supported yet; run the step eagerly"
_POOLS = "the caching allocator has one pool for each stream; private pools are not supported yet"
_HISTORY = "nobody records where memory was allocated; torch.npu.memory_snapshot() shows what there is now"
_TYPES = "there are no tensor types of npu devices; write torch.tensor(..., dtype=torch.float32, device='npu')"
_STORAGES = "storages have no element type; write torch.UntypedStorage(nbytes, device='npu')"
_CUDA = "it belongs to NVIDIA's libraries"
_SENSORS = "a simulated device has no such sensor; torch.npu.utilization() and engine_usage() say how busy it is"
_CACHING = "the caching allocator cannot be turned off; torch.npu.empty_cache() gives unused memory back"
_ALLOCATORS = "the caching allocator cannot be replaced; PYTORCH_ALLOC_CONF tunes it"
_COMPILED = "its kernels are compiled for the host's processor, not for generations of devices"

_REASONS = {
    _GRAPHS: "CUDAGraph NPUGraph graph graph_pool_handle graphs make_graphed_callables",
    _POOLS: "MemPool use_mem_pool",
    _HISTORY: "_record_memory_history _dump_snapshot _snapshot _save_memory_usage _save_segment_usage",
    _TYPES: "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor "
    "ShortTensor",
    _STORAGES: "BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage "
    "DoubleStorage FloatStorage HalfStorage IntStorage LongStorage ShortStorage",
    _CUDA: "GreenContext cudart cudaStatus check_error current_blas_handle current_solver_handle",
    _SENSORS: "temperature power_draw memory_usage",
    _CACHING: "caching_allocator_enable caching_allocator_disabled",
    _ALLOCATORS: "CUDAPluggableAllocator NPUPluggableAllocator change_current_allocator",
    _COMPILED: "get_arch_list get_gencode_flags jiterator tunable",
    "errors of npu are torch.AcceleratorError and torch.OutOfMemoryError": "CudaError",
    "calls are never deferred; the first use of a device initialises it": "DeferredCudaCallError",
    "memory is not shared between processes": "ipc_collect",
    "a simulated device lives in this process; torch.npu.memory_summary() shows its memory": "list_gpu_processes",
    "ranges for profilers are not supported yet; torch_npu_lite.timeline records when each task ran": "nvtx profiler",
    "there is no collective library yet": "nccl hccl",
    "there are no tensor types of npu devices; write torch.sparse_coo_tensor(..., device='npu')": "sparse",
}
_REASON_OF = {name: reason for reason, names in _REASONS.items() for name in names.split()}


def explain(name: str, module: str = "torch.npu") -> str:
    """The text of the AttributeError for a name that ``torch.npu`` or a module of it does not have."""
    reason = _REASON_OF.get(name)
    return f"module '{module}' has no attribute '{name}'" + (f": {reason}." if reason else "")
