"""PYTORCH_ALLOC_CONF: PyTorch's settings of caching allocators, with PyTorch's meaning."""

import pytest
import torch

MIB = 1 << 20

ALLOCATE = """
MIB = 1 << 20
def allocate(mib):
    return torch.empty(int(mib * MIB), dtype=torch.uint8, device="npu")
def reserved():
    return torch.npu.memory_reserved() // MIB
"""


@pytest.mark.parametrize("variable", ["PYTORCH_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF"])
def test_blocks_above_the_split_limit_stay_whole(run_child, variable):
    child = run_child(
        ALLOCATE
        + """
large = allocate(100)
del large
small = allocate(20)
print(reserved(), torch.npu.memory_stats()["max_split_size"] // MIB)
again = allocate(90)
print(torch.npu.memory_stats()["oversize_allocations.current"], reserved())
""",
        **{variable: "max_split_size_mb:64"},
    )
    assert (child.returncode, child.stdout) == (0, "120 64\n1 120\n"), child.stderr


def test_sizes_are_rounded_to_steps(run_child):
    child = run_child(
        ALLOCATE + "x = allocate(1.2); print(torch.npu.memory_allocated() / MIB)",
        PYTORCH_ALLOC_CONF="roundup_power2_divisions:4",
    )
    assert (child.returncode, child.stdout) == (0, "1.25\n"), child.stderr


def test_old_segments_go_above_the_threshold(run_child):
    child = run_child(
        ALLOCATE
        + """
for mib in (100, 110, 120, 130):
    allocate(mib)
print(reserved())
""",
        PYTORCH_ALLOC_CONF="garbage_collection_threshold:0.4, max_split_size_mb:20",
        NPU_SIM_MEMORY="512M",
    )
    assert child.returncode == 0, child.stderr
    assert int(child.stdout) < 460


def test_pinned_memory_obeys_the_variable_of_npu(run_child):
    child = run_child(
        "x = torch.empty(3 << 20, dtype=torch.uint8, pin_memory=True)\n"
        "print(torch.npu.host_memory_stats()['allocated_bytes.current'] >> 20 if torch.npu.is_initialized() else None)",
        PYTORCH_NPU_ALLOC_CONF="pinned_max_round_threshold_mb:1",
    )
    assert (child.returncode, child.stdout) == (0, "3\n"), child.stderr


def test_both_variables_may_agree(run_child):
    child = run_child(
        "print(torch.ones(1, device='npu').item())",
        PYTORCH_ALLOC_CONF="max_split_size_mb:64",
        PYTORCH_NPU_ALLOC_CONF="max_split_size_mb:64",
    )
    assert (child.returncode, child.stdout) == (0, "1.0\n"), child.stderr


def test_settings_of_cuda_do_not_matter(run_child):
    child = run_child("print(torch.ones(1, device='npu').item())", PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
    assert (child.returncode, child.stdout) == (0, "1.0\n"), child.stderr


def test_expandable_segments_are_said_to_have_no_effect(run_child):
    child = run_child(
        "torch.ones(1, device='npu:0'), torch.ones(1, device='npu:1')", PYTORCH_ALLOC_CONF="expandable_segments:True"
    )
    assert child.returncode == 0, child.stderr
    assert child.stderr.count("expandable_segments:True has no effect on npu") == 1


WRONG = {
    "max_split_size_mb:abc": "max_split_size_mb is 'abc', expected a whole number of MiB, 20 or more.",
    "max_split_size_mb:-5": "max_split_size_mb is '-5', expected a whole number of MiB, 20 or more.",
    "max_split_size_mb": "max_split_size_mb is '', expected",
    "garbage_collection_threshold:1.5": "is '1.5', expected a number between 0 and 1",
    "expandable_segments:yes": "is 'yes', expected True or False",
    "roundup_power2_divisions:3": "is '3', expected a power of two, or one for each range",
    "roundup_power2_divisions:[256:1,x:2]": "is '[256:1,x:2]', expected a power of two",
    "max_split:64": "there is no setting 'max_split'. Expected pairs key:value",
    "large_segment_size_mb:100,max_split_size_mb:50": "max_split_size_mb too small, must be >= 100",
}


@pytest.mark.parametrize("settings", WRONG)
def test_what_cannot_be_used_is_named(run_child, settings):
    program = """
    for attempt in range(2):
        try:
            torch.ones(1, device="npu")
        except ValueError as error:
            print(error)
    """
    child = run_child(program, PYTORCH_ALLOC_CONF=settings)
    assert child.returncode == 0, child.stderr
    first, second = child.stdout.splitlines()
    assert f"PYTORCH_ALLOC_CONF={settings} cannot be used: " in first, child.stdout + child.stderr
    assert WRONG[settings] in first and first == second


def test_variables_that_contradict_each_other(run_child):
    child = run_child(
        "torch.ones(1, device='npu')",
        PYTORCH_ALLOC_CONF="max_split_size_mb:64",
        PYTORCH_NPU_ALLOC_CONF="max_split_size_mb:32",
    )
    assert child.returncode == 1
    assert "contradict each other" in child.stderr


def test_settings_can_change_while_the_program_runs(run_child):
    child = run_child(
        ALLOCATE
        + """
before = allocate(1.2)
print(torch.npu.memory_allocated() / MIB)
torch.npu.memory._set_allocator_settings("roundup_power2_divisions:2")
after = allocate(1.2)
print(torch.npu.memory_allocated() / MIB)
try:
    torch.npu.memory._set_allocator_settings("frobnicate:1")
except ValueError as error:
    print("frobnicate" in str(error))
"""
    )
    assert child.returncode == 0, child.stderr
    before, after, refused = child.stdout.split()
    assert float(after) - float(before) == 1.5 and refused == "True"


def test_settings_of_a_call_are_checked_like_those_of_variables():
    with pytest.raises(ValueError, match="max_split_size_mb is 'banana'"):
        torch.npu.memory._set_allocator_settings("max_split_size_mb:banana")


def test_default_settings_limit_nothing():
    torch.npu.init()
    torch.npu.current_stream()
    assert torch.npu.memory_stats()["max_split_size"] == -1
