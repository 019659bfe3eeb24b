"""Operators on more than a million elements and on lists of 500 tensors.

They give the CPU's bits, from run to run and with any number of workers, also when each tile holds one element, so that
every seam between tiles is crossed; then only products of matrices are rounded otherwise.
"""

from __future__ import annotations

from pathlib import Path

import large_programs
import pytest
from digests import digest
from processes import differences, finish, printed, start

PROGRAM = Path(__file__).with_name("large_programs.py")
QUICK = ("add", "transposed", "sum", "index_put", "mm", "cat")
WORKERS = ("1", "2", "5")
TILES = ("1", "100")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.conformance) for n in large_programs.PROGRAMS]
)
def test_like_cpu(name):
    large_programs.assert_like_cpu(name)


@pytest.mark.conformance
@pytest.mark.parametrize("name", [*large_programs.PROGRAMS, *large_programs.RANDOM_PROGRAMS])
def test_same_bits_from_run_to_run(name):
    program = large_programs.PROGRAMS.get(name) or large_programs.RANDOM_PROGRAMS[name]
    assert digest(large_programs.run(program, "npu")) == digest(large_programs.run(program, "npu"))


@pytest.mark.conformance
@pytest.mark.timeout(1200)
def test_same_bits_with_any_number_of_workers():
    found = {workers: printed(finish(start(PROGRAM, NPU_SIM_WORKERS=workers))) for workers in WORKERS}
    assert len(found["1"]) == len(large_programs.PROGRAMS) + len(large_programs.RANDOM_PROGRAMS)
    assert [differences(found[workers], found["1"]) for workers in WORKERS] == [[]] * len(WORKERS)


@pytest.mark.conformance
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("elements", TILES)
def test_like_cpu_in_tiles_of(elements):
    names = finish(start(PROGRAM, "cpu", NPU_SIM_TILE_ELEMENTS=elements)).splitlines()
    assert names == list(large_programs.PROGRAMS)
