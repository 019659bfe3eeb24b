"""Views share memory with their base, in every form that CPU tensors have."""

import pytest
import torch

VIEWS = {
    "view": lambda x: x.view(6, 4),
    "reshape": lambda x: x.reshape(-1),
    "transpose": lambda x: x.transpose(0, 2),
    "permute": lambda x: x.permute(2, 0, 1),
    "slice": lambda x: x[:, 1:, ::2],
    "select": lambda x: x[1],
    "expand": lambda x: x[:, :1].expand(2, 3, 4),
    "unfold": lambda x: x.unfold(2, 2, 1),
    "as_strided": lambda x: x.as_strided((2, 2), (5, 1), 3),
    "squeeze": lambda x: x[:, :1].squeeze(1),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "split": lambda x: x.split(2, dim=2)[1],
    "chunk": lambda x: x.chunk(2, dim=1)[0],
    "unbind": lambda x: x.unbind(1)[2],
    "movedim": lambda x: x.movedim(0, 2),
    "narrow": lambda x: x.narrow(2, 1, 2),
    "flatten": lambda x: x.flatten(1),
    "view_dtype": lambda x: x.view(torch.int32),
    "view_narrower": lambda x: x.view(torch.int16),
    "detach": lambda x: x.detach(),
    "alias": lambda x: torch.ops.aten.alias(x),
    "view_as_complex": lambda x: torch.view_as_complex(x.view(2, 3, 2, 2)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_view_equals_cpu_and_shares_memory(name):
    cpu = torch.arange(24.0).reshape(2, 3, 4)
    npu = cpu.npu()
    expected, actual = VIEWS[name](cpu), VIEWS[name](npu)
    assert (actual.shape, actual.stride(), actual.dtype) == (expected.shape, expected.stride(), expected.dtype)
    assert actual.storage_offset() == expected.storage_offset()
    assert actual.untyped_storage().data_ptr() == npu.untyped_storage().data_ptr()
    assert torch.equal(actual.cpu(), expected)


@pytest.mark.parametrize("name", ["transpose", "slice", "select", "diagonal", "unfold"])
def test_writes_through_a_view_reach_the_base(name):
    cpu = torch.zeros(2, 3, 4)
    npu = cpu.npu()
    for x in (cpu, npu):
        view = VIEWS[name](x)
        if name == "unfold":
            view = view[..., 0]
        view.copy_(torch.arange(float(view.numel())).reshape(view.shape))
    assert torch.equal(npu.cpu(), cpu)


@pytest.mark.parametrize("name", ["real", "imag", "view_as_real", "conj", "conj_physical", "H", "neg_view"])
def test_complex_views(name):
    functions = {
        "real": lambda x: x.real,
        "imag": lambda x: x.imag,
        "view_as_real": torch.view_as_real,
        "conj": lambda x: x.conj() * 2,
        "conj_physical": torch.conj_physical,
        "H": lambda x: x.mH @ x,
        "neg_view": lambda x: x.conj().imag,
    }
    cpu = torch.randn(3, 4, dtype=torch.complex64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(functions[name](cpu.npu()).cpu(), functions[name](cpu))


def test_views_launch_nothing():
    x = torch.ones(2, 3, 4, device="npu")
    torch.npu.op_stats(reset=True)
    for name in ("view", "transpose", "unfold", "as_strided", "view_as_complex", "expand"):
        VIEWS[name](x)
    stats = torch.npu.op_stats()
    assert stats and all(sum(counts.values()) == counts["view"] for counts in stats.values())
