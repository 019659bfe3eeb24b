"""Device memory: statistics, limits, pinned memory."""

import gc

import pytest
import torch

from torch_npu_lite.testing import Gate

MIB = 1 << 20


@pytest.fixture(autouse=True)
def clean():
    gc.collect()
    torch.npu.synchronize()
    torch.npu.empty_cache()
    torch.npu.reset_peak_memory_stats()


def test_allocated_follows_tensors():
    before = torch.npu.memory_allocated()
    x = torch.empty(3 * MIB, dtype=torch.uint8, device="npu")
    assert torch.npu.memory_allocated() - before == 3 * MIB
    assert torch.npu.memory_reserved() >= torch.npu.memory_allocated()
    assert torch.npu.max_memory_allocated() >= before + 3 * MIB
    del x
    assert torch.npu.memory_allocated() == before


def test_sizes_are_rounded_to_512_bytes():
    before = torch.npu.memory_allocated()
    x = torch.empty(1, device="npu")
    assert torch.npu.memory_allocated() - before == 512
    assert x.data_ptr() % 256 == 0


def test_peak_can_be_reset():
    x = torch.empty(8 * MIB, dtype=torch.uint8, device="npu")
    peak = torch.npu.max_memory_allocated()
    del x
    torch.npu.reset_peak_memory_stats()
    assert torch.npu.max_memory_allocated() <= peak - 8 * MIB


def test_stats_have_the_keys_of_cuda():
    torch.empty(1, device="npu")
    stats = torch.npu.memory_stats()
    for metric in ("allocation", "segment", "active", "inactive_split"):
        for suffix in ("", "_bytes") if metric in ("active", "inactive_split") else ("",):
            for pool in ("all", "small_pool", "large_pool"):
                for column in ("current", "peak", "allocated", "freed"):
                    assert f"{metric}{suffix}.{pool}.{column}" in stats
    for key in ("allocated_bytes", "reserved_bytes", "requested_bytes"):
        assert f"{key}.all.current" in stats
    for key in ("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free"):
        assert key in stats
    assert stats == torch.accelerator.memory_stats()


def test_reset_accumulated():
    torch.empty(1, device="npu")
    torch.npu.reset_accumulated_memory_stats()
    assert torch.npu.memory_stats()["allocation.all.allocated"] == 0


def test_summary_is_a_table():
    text = torch.npu.memory_summary()
    assert "Reserved memory" in text and "large pool" in text
    assert "large pool" not in torch.npu.memory_summary(abbreviated=True)


def test_empty_cache_gives_memory_back():
    free, total = torch.npu.mem_get_info()
    x = torch.empty(64 * MIB, dtype=torch.uint8, device="npu")
    assert torch.npu.mem_get_info()[0] <= free - 64 * MIB
    del x
    torch.npu.empty_cache()
    assert torch.npu.mem_get_info() == (free, total)


def test_out_of_memory_is_an_error_that_names_sizes_and_leaks_nothing():
    before = torch.npu.memory_allocated()
    total = torch.npu.mem_get_info()[1]
    with pytest.raises(torch.OutOfMemoryError, match=r"(?i)allocat.*\d"):
        torch.empty(2 * total, dtype=torch.uint8, device="npu")
    assert torch.npu.memory_allocated() == before
    assert torch.npu.memory_stats()["num_ooms"] > 0
    assert torch.ones(4, device="npu").sum().item() == 4


def test_memory_fraction():
    total = torch.npu.mem_get_info()[1]
    torch.npu.set_per_process_memory_fraction(0.1)
    try:
        assert torch.npu.get_per_process_memory_fraction() == pytest.approx(0.1)
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(total // 5, dtype=torch.uint8, device="npu")
    finally:
        torch.npu.set_per_process_memory_fraction(1.0)
    with pytest.raises(ValueError, match="fraction"):
        torch.npu.set_per_process_memory_fraction(1.5)


def test_raw_allocations():
    before = torch.npu.memory_allocated()
    address = torch.npu.caching_allocator_alloc(1000)
    assert torch.npu.memory_allocated() == before + 1024
    torch.npu.caching_allocator_delete(address)
    assert torch.npu.memory_allocated() == before
    with pytest.raises(RuntimeError, match="allocation"):
        torch.npu.caching_allocator_delete(4096)


def test_pin_memory():
    x = torch.arange(1000.0)
    assert not x.is_pinned()
    pinned = x.pin_memory()
    assert pinned.is_pinned() and pinned.device.type == "cpu"
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert pinned[10:].is_pinned()
    assert torch.equal(pinned, x)


def test_pinned_block_is_not_reused_while_a_copy_needs_it():
    n = 1 << 16
    source = torch.full((n,), 1.0).pin_memory()
    with Gate():
        target = source.to("npu", non_blocking=True)
        address = source.data_ptr()
        del source
        other = torch.empty(n, pin_memory=True)
        assert other.data_ptr() != address
        other.fill_(2.0)
    assert target.cpu().unique().tolist() == [1.0]


def test_dataloader_pins():
    data = torch.utils.data.TensorDataset(torch.arange(8.0))
    for (batch,) in torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True):
        assert batch.is_pinned()


def test_profiler_sees_allocations():
    with torch.profiler.profile(profile_memory=True) as profile:
        torch.empty(4 * MIB, dtype=torch.uint8, device="npu")
    assert any(event.name == "[memory]" for event in profile.events()) or profile.key_averages()


@pytest.mark.parametrize("device", [7, -3, 128, 2**40, "npu:7"])
@pytest.mark.parametrize(
    "name", ["memory_stats", "memory_allocated", "memory_summary", "reset_peak_memory_stats", "get_rng_state"]
)
def test_a_device_that_does_not_exist_is_named(name, device):
    index = torch.device(device).index if isinstance(device, str) else device
    with pytest.raises((RuntimeError, ValueError), match=f"invalid device index {index}"):
        getattr(torch.npu, name)(device)


def test_peaks_can_be_reset_before_the_first_allocation(run_child):
    child = run_child(
        "torch.npu.synchronize(); torch.npu.reset_peak_memory_stats(); print(torch.npu.memory_stats()['num_ooms'])"
    )
    assert (child.returncode, child.stdout) == (0, "0\n"), child.stderr
