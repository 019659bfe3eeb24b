"""Programs with sparse tensors on npu: construction, conversion, products, training, errors."""

from __future__ import annotations

import io
import itertools

import pytest
import torch

LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
COMPRESSED = LAYOUTS[1:]
INDICES = torch.tensor([[0, 1, 1, 0], [2, 0, 2, 2]])
VALUES = torch.tensor([1.0, 2.0, 3.0, 4.0])


@pytest.fixture(autouse=True)
def no_fallback():
    torch.npu.op_stats(reset=True)
    yield
    assert [name for name, counts in torch.npu.op_stats().items() if counts["fallback"]] == []


def sparse(layout: torch.layout, device: str = "npu", dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """4 x 6 with some zeros."""
    torch.manual_seed(1)
    dense = (torch.randn(4, 6) * (torch.rand(4, 6) > 0.5)).to(dtype)
    blocks = (2, 2) if layout in (torch.sparse_bsr, torch.sparse_bsc) else None
    return dense.to(device).to_sparse(layout=layout, blocksize=blocks)


def assert_same(actual: torch.Tensor, expected: torch.Tensor) -> None:
    assert actual.device.type == "npu"
    torch.testing.assert_close(actual.cpu(), expected)


def test_coo_from_indices_and_values():
    for tensor in (
        torch.sparse_coo_tensor(INDICES, VALUES, (2, 3), device="npu"),
        torch.sparse_coo_tensor(INDICES.npu(), VALUES.npu(), (2, 3)),
        torch.sparse_coo_tensor(INDICES.npu(), VALUES.npu()),
    ):
        assert tensor.device.type == "npu" and tensor._nnz() == 4 and not tensor.is_coalesced()
        assert tensor._indices().device == tensor._values().device == tensor.device
        coalesced = tensor.coalesce()
        assert coalesced.indices().tolist() == [[0, 1, 1], [2, 0, 2]]
        assert coalesced.values().tolist() == [5.0, 2.0, 3.0]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_to_sparse_and_back(layout):
    tensor, expected = sparse(layout), sparse(layout, "cpu")
    assert_same(tensor, expected)
    assert_same(tensor.to_dense(), expected.to_dense())
    assert_same(expected.to("npu"), expected)
    assert_same(tensor.to("npu", torch.float64), expected.double())
    assert_same(tensor.clone(), expected)


@pytest.mark.parametrize(("source", "target"), list(itertools.product(LAYOUTS, LAYOUTS)))
def test_conversions_between_layouts(source, target):
    blocks = {"blocksize": (2, 2)} if target in (torch.sparse_bsr, torch.sparse_bsc) else {}
    try:
        expected = sparse(source, "cpu").to_sparse(layout=target, **blocks)
    except RuntimeError as refusal:
        with pytest.raises(RuntimeError, match=str(refusal).split(":")[0][:20]):
            sparse(source).to_sparse(layout=target, **blocks)
        return
    assert_same(sparse(source).to_sparse(layout=target, **blocks), expected)


def test_members_share_the_memory_of_the_tensor():
    tensor = sparse(torch.sparse_coo)
    tensor._values().fill_(7)
    assert set(tensor.values().tolist()) == {7.0}
    tensor = sparse(torch.sparse_csr)
    tensor.values().fill_(7)
    assert set(tensor.to_dense().flatten().tolist()) == {0.0, 7.0}


def test_copy_between_tensors_and_devices():
    source = sparse(torch.sparse_coo)
    target = torch.sparse_coo_tensor((4, 6), device="npu")
    assert_same(target.copy_(source), source.cpu())
    host = torch.sparse_coo_tensor((4, 6))
    torch.testing.assert_close(host.copy_(source), source.cpu())
    other = source.to("npu:1")
    assert other.device == torch.device("npu:1")
    torch.testing.assert_close(other.cpu(), source.cpu())


PRODUCTS = {
    "matmul": lambda a, b: a @ b,
    "sparse.mm": torch.sparse.mm,
    "mv": lambda a, b: a.mv(b[:, 0]),
    "addmm": lambda a, b: torch.sparse.addmm(b.new_ones(4, 3), a, b, beta=0.5, alpha=2.0),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_with_dense_matrices_and_their_gradients(layout, name):
    def run(device: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        a = sparse(layout, device).requires_grad_()
        b = torch.randn(6, 3).to(device).requires_grad_()
        result = PRODUCTS[name](a, b)
        result.sum().backward()
        return [result, *(t.grad for t in (a, b) if t.grad is not None)]

    try:
        expected = run("cpu")
    except (RuntimeError, NotImplementedError):
        with pytest.raises((RuntimeError, NotImplementedError)):
            run("npu")
        return
    for a, e in zip(run("npu"), expected, strict=True):
        assert_same(a, e)


def coo(device: str) -> torch.Tensor:
    return sparse(torch.sparse_coo, device).coalesce()


def csr(device: str) -> torch.Tensor:
    return sparse(torch.sparse_csr, device)


CALLS = {
    "sparse.sum": lambda d: torch.sparse.sum(coo(d), 0),
    "sparse.sum all": lambda d: torch.sparse.sum(coo(d)),
    "sparse.softmax": lambda d: torch.sparse.softmax(coo(d), 1),
    "sparse.log_softmax": lambda d: torch.sparse.log_softmax(coo(d), 1),
    "sparse.sampled_addmm": lambda d: torch.sparse.sampled_addmm(
        csr(d), torch.ones(4, 5, device=d), torch.ones(5, 6, device=d)
    ),
    "sparse x sparse": lambda d: coo(d) @ coo(d).t(),
    "csr x csr": lambda d: csr(d) @ csr(d).to_dense().t().to_sparse_csr(),
    "sparse.mm reduce": lambda d: torch.sparse.mm(csr(d), torch.ones(6, 2, device=d), "mean"),
    "sparse.spdiags": lambda d: torch.sparse.spdiags(
        torch.arange(6.0, device=d).view(2, 3), torch.tensor([0, 1], device=d), (3, 3)
    ),
    "hspmm": lambda d: torch.hspmm(coo(d), torch.ones(6, 2, device=d)),
    "smm": lambda d: torch.smm(coo(d), torch.ones(6, 2, device=d)),
    "sspaddmm": lambda d: torch.sspaddmm(coo(d).narrow_copy(1, 0, 2), coo(d), torch.ones(6, 2, device=d)),
    "bmm": lambda d: torch.bmm(torch.stack([coo(d), coo(d)]), torch.ones(2, 6, 3, device=d)),
    "sparse + sparse": lambda d: coo(d) + coo(d) * 2,
    "dense + sparse": lambda d: torch.ones(4, 6, device=d) + coo(d),
    "dense.add_(sparse)": lambda d: torch.ones(4, 6, device=d).add_(coo(d), alpha=3),
    "sparse.add_": lambda d: coo(d).add_(coo(d)),
    "csr + csr": lambda d: csr(d) + csr(d),
    "sparse * sparse": lambda d: coo(d) * coo(d),
    "sparse * dense": lambda d: coo(d) * torch.full((4, 6), 2.0, device=d),
    "sparse / number": lambda d: coo(d) / 2,
    "sparse_mask": lambda d: torch.ones(4, 6, device=d).sparse_mask(coo(d)),
    "csr mask": lambda d: torch.ones(4, 6, device=d).sparse_mask(csr(d)),
    "cat": lambda d: torch.cat([coo(d), coo(d)]),
    "stack": lambda d: torch.stack([coo(d), coo(d)]),
    "index_select": lambda d: coo(d).index_select(0, torch.tensor([0, 2], device=d)),
    "select": lambda d: coo(d)[1],
    "csr row": lambda d: csr(d)[1],
    "narrow_copy": lambda d: coo(d).narrow_copy(0, 1, 2),
    "transpose": lambda d: coo(d).t(),
    "permute": lambda d: coo(d).permute(1, 0),
    "unsqueeze": lambda d: coo(d).unsqueeze(0),
    "norm": lambda d: coo(d).norm(),
    "pow": lambda d: coo(d).pow(2),
    "zero_": lambda d: coo(d).zero_(),
    "resize": lambda d: coo(d).sparse_resize_((5, 7), 2, 0),
    "any": lambda d: coo(d).bool().any(),
    "values": lambda d: coo(d).values(),
    "crow_indices": lambda d: csr(d).crow_indices(),
    "col_indices": lambda d: csr(d).col_indices(),
    "csr sum": lambda d: csr(d).sum(),
    "csr sum of rows": lambda d: torch.sum(csr(d), 1, keepdim=True),
    "addmv": lambda d: torch.addmv(torch.ones(4, device=d), csr(d), torch.ones(6, device=d)),
    "triangular_solve": lambda d: torch.triangular_solve(
        torch.ones(3, 2, device=d), torch.eye(3, device=d).to_sparse_csr(), upper=True
    )[0],
    "broadcast": lambda d: torch.ops.aten._sparse_broadcast_to(coo(d), (2, 4, 6)),
    "eye": lambda d: torch.eye(3, device=d).to_sparse(1),
    "empty": lambda d: torch.zeros(2, 3, layout=torch.sparse_coo, device=d),
    "empty csr": lambda d: torch.zeros(2, 3, layout=torch.sparse_csr, device=d),
    "zeros_like": lambda d: torch.zeros_like(coo(d)),
    "svd_lowrank shape": lambda d: torch.svd_lowrank(coo(d), 2)[1] * 0,
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_like_cpu(name):
    assert_same(CALLS[name]("npu"), CALLS[name]("cpu"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_save_and_load(layout):
    tensor = sparse(layout)
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    assert_same(torch.load(file), tensor.cpu())
    file.seek(0)
    loaded = torch.load(file, map_location="cpu")
    torch.testing.assert_close(loaded, tensor.cpu())


@pytest.mark.parametrize("optimizer", [torch.optim.SparseAdam, torch.optim.SGD, torch.optim.Adagrad])
def test_sparse_embedding_trains_like_cpu(optimizer):
    def train(device: str) -> torch.Tensor:
        torch.manual_seed(0)
        embedding = torch.nn.Embedding(10, 4, sparse=True).to(device)
        steps = optimizer(embedding.parameters(), lr=0.1)
        for batch in (torch.tensor([1, 2, 1]), torch.tensor([3, 9, 2])):
            steps.zero_grad()
            embedding(batch.to(device)).square().sum().backward()
            assert embedding.weight.grad.layout is torch.sparse_coo
            assert embedding.weight.grad.device.type == device
            steps.step()
        return embedding.weight.detach()

    assert_same(train("npu"), train("cpu"))


def test_gradients_accumulate_and_print():
    tensor = coo("npu")
    assert "device='npu:0'" in str(tensor) and "sparse_coo" in str(tensor)
    weight = torch.nn.EmbeddingBag(10, 4, mode="sum", sparse=True).npu()
    for _ in range(2):
        weight(torch.tensor([[1, 2], [3, 3]], device="npu")).sum().backward()
    assert weight.weight.grad.coalesce().indices().tolist() == [[1, 2, 3]]


WRONG = {
    "index too large": lambda d: torch.sparse_coo_tensor([[0, 5], [0, 0]], [1.0, 2.0], (2, 2), device=d),
    "negative index": lambda d: torch.sparse_coo_tensor([[0, -1], [0, 0]], [1.0, 2.0], (2, 2), device=d),
    "values too few": lambda d: torch.sparse_coo_tensor([[0, 1], [0, 0]], [1.0], (2, 2), device=d),
    "rows not ordered": lambda d: torch.sparse_csr_tensor([0, 2, 1], [0, 1], [1.0, 2.0], (2, 2), device=d),
    "column too large": lambda d: torch.sparse_csr_tensor([0, 1, 2], [0, 7], [1.0, 2.0], (2, 2), device=d),
    "blocks": lambda d: torch.ones(3, 3, device=d).to_sparse_bsr((2, 2)),
    "sizes": lambda d: coo(d) @ torch.ones(5, 2, device=d),
    "not coalesced": lambda d: torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (2,), device=d).values(),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_refused_in_the_words_of_the_cpu(name):
    with torch.sparse.check_sparse_tensor_invariants():
        with pytest.raises(RuntimeError) as expected:
            WRONG[name]("cpu")
        with pytest.raises(RuntimeError) as actual:
            WRONG[name]("npu")
    assert str(actual.value).split("\n")[0] == str(expected.value).split("\n")[0]


def test_an_operator_without_a_sparse_kernel_is_refused():
    with pytest.raises(NotImplementedError, match=r"Could not run 'aten::cumsum' .*Sparse"):
        coo("npu").cumsum(0)


def test_waits_are_counted_as_synchronous():
    tensor = torch.sparse_coo_tensor(INDICES.npu(), VALUES.npu(), (2, 3))
    torch.npu.op_stats(reset=True)
    tensor.coalesce()
    tensor._indices()
    stats = torch.npu.op_stats()
    assert stats["aten::_coalesce"]["synchronous"] == 1
    assert stats["aten::_indices"]["host_waits"] == 0


def test_tensors_of_a_device_that_is_not_the_current_one():
    table = torch.nn.Embedding(4, 2, sparse=True).to("npu:1")
    table(torch.tensor([1, 1], device="npu:1")).sum().backward()
    assert table.weight.grad.coalesce().values().device == torch.device("npu:1")
    torch.optim.SparseAdam(table.parameters()).step()
    tensor = torch.sparse_coo_tensor(INDICES, VALUES, (2, 3), device="npu:1")
    assert_same((tensor.coalesce() + tensor).to_dense(), (2 * tensor.cpu()).to_dense())


@pytest.mark.skipif(torch.npu.device_count() < 2, reason="needs two devices")
def test_members_on_two_devices_are_refused():
    indices, values = torch.tensor([[0, 1]]), torch.ones(2)
    for one, other in (("npu:0", "npu:1"), ("npu:1", "npu:0")):
        with pytest.raises(RuntimeError, match=f"same device, but found at least two devices, {one} and {other}"):
            torch.sparse_coo_tensor(indices.to(one), values.to(other), (2,))


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_reducing_products_and_their_gradients(reduce):
    def run(device: str) -> list[torch.Tensor]:
        matrix = (torch.eye(4, 6) + 1).to_sparse_csr().to(device).requires_grad_()
        dense = torch.arange(18.0).reshape(6, 3).to(device).requires_grad_()
        result = torch.sparse.mm(matrix, dense, reduce)
        result.sum().backward()
        return [result, matrix.grad, dense.grad]

    for actual, expected in zip(run("npu"), run("cpu"), strict=True):
        assert_same(actual, expected)


def test_masks_and_the_gradient_of_values():
    def run(device: str) -> list[torch.Tensor]:
        values = torch.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
        tensor = torch.sparse_coo_tensor(torch.tensor([[0, 1, 1]], device=device), values, (3,))
        masked = tensor.detach().sparse_mask(tensor.detach().coalesce())
        tensor.to_dense().square().sum().backward()
        return [masked, values.grad]

    for actual, expected in zip(run("npu"), run("cpu"), strict=True):
        assert_same(actual, expected)
