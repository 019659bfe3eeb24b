"""PyTorch's own optimizers and their sample settings (optim_db): some steps on npu equal those on CPU.

Each setting runs as it comes, with foreach=True and with fused=True where the optimizer has them.
"""

from __future__ import annotations

import inspect
import warnings

import pytest
import torch
from torch.testing._internal.common_optimizers import OptimizerInfo, OptimizerInput, optim_db

STEPS = 3
# Optimizers that refuse the parameters of this test, with the reason.
NOT_COMPARED = {"SparseAdam": "it takes sparse gradients only"}


def implementations(info: OptimizerInfo) -> list[dict]:
    known = inspect.signature(info.optim_cls.__init__).parameters
    return [{}, *({name: True} for name in ("foreach", "fused") if name in known)]


def parameters(device: str) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    sizes = ((4, 3), (3,), (2, 2, 2), (6, 5))
    return [torch.randn(size, generator=generator).to(device).requires_grad_() for size in sizes]


def train(info: OptimizerInfo, sample: OptimizerInput, implementation: dict, device: str) -> list[torch.Tensor]:
    weights = parameters(device)
    settings = {k: v.to(device) if isinstance(v, torch.Tensor) and v.dim() else v for k, v in sample.kwargs.items()}
    only_matrices = info.optim_cls.__name__ == "Muon"
    chosen = [w for w in weights if w.dim() == 2] if only_matrices else weights
    optimizer = info.optim_cls(chosen, **{**settings, **implementation})

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = sum((weight * weight).sum() + weight.sum() for weight in weights)
        value.backward()
        return value

    for _ in range(STEPS):
        optimizer.step(loss)
    return [weight.detach().cpu() for weight in weights]


@pytest.mark.parametrize("info", [pytest.param(info, id=info.optim_cls.__name__) for info in optim_db])
def test_like_cpu(info, note_operators):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for implementation in implementations(info):
            compared = 0
            for sample in info.optim_inputs_func(device="cpu"):
                try:
                    expected = train(info, sample, implementation, "cpu")
                except Exception:  # such as settings that exclude each other
                    continue
                torch.npu.op_stats(reset=True)
                actual = train(info, sample, implementation, "npu")
                stats = torch.npu.op_stats(reset=True)
                note_operators(stats, test=f"optim_db:{info.optim_cls.__name__}", dtype="float32")
                assert [name for name, counts in stats.items() if counts["fallback"]] == []
                torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
                compared += 1
            assert compared > 0 or info.optim_cls.__name__ in NOT_COMPARED, implementation
