"""Where npu may differ from the CPU over op_db, and why. Patterns are fnmatch's, over an entry's full name."""

from __future__ import annotations

import torch


def why(reason: str, *patterns: str) -> dict[str, str]:
    return dict.fromkeys(patterns, reason)


# Entries that are left out.
SKIPPED = {
    **why("operators on sparse tensors, which have tests of their own", "sparse.*", "to_sparse"),
    **why("compiled for CUDA at run time; the CPU has none", "jiterator*"),
}

# Entries whose samples the CPU refuses, so that nothing is compared but the refusal.
NOT_COMPARED: dict[str, str] = {}

# "entry number" of calls that are refused, but in other words.
OTHER_WORDS = {
    **why("npu's words say what would be right", "narrow_copy 1", "narrow_copy 6"),
}

# Entries whose results on the CPU are lazy conjugates, where those of npu hold the values.
CONJUGATES = {
    **why("whether the CPU's result is one depends on the layouts of its arguments", "linalg.lu_solve"),
}

# "entry mode layout" that are left out because the CPU is at fault, or free to choose.
CPU_DIFFERS = {
    **why(
        "the CPU writes past the end of such outputs",
        *(f"{entry} out-transposed as_it_is" for entry in ("tril", "triu", "lu_unpack", "linalg.lu")),
    ),
    **why(
        "the CPU leaves outputs of strided inputs, and strided outputs, unwritten",
        *(f"*native_batch_norm* out {layout}" for layout in ("noncontiguous", "permuted")),
        "*native_batch_norm* out-transposed as_it_is",
    ),
    **why(
        "the CPU's choice of kernel decides how small gradients lie",
        "nn.functional.conv_transpose3d backward channels_last",
    ),
    **why(
        "the CPU refuses to derive where the gradient would not be contiguous",
        *(f"nn.functional.nll_loss backward {layout}" for layout in ("permuted", "channels_last")),
    ),
}

# "entry dtype" of values that may differ in the last bits.
ROUNDED = {
    **why("the CPU's own bits differ from run to run", "linalg.lstsq* *"),
    **why(
        "PyTorch sums up half precision in float32 on the CPU alone",
        "nn.functional.linear_cross_entropy.chunked* *float16",
    ),
}

# (rtol, atol) of rounded values.
TOLERANCE = {
    torch.float64: (1e-7, 1e-7),
    torch.complex128: (1e-7, 1e-7),
    torch.float32: (2e-3, 2e-4),
    torch.bfloat16: (5e-2, 5e-2),
    torch.float16: (2e-2, 2e-2),
}
