"""However the device runs its tasks, the bits are the same: blocking launches, no inlining, one worker, many workers.

Each way is a process of its own that prints digests of op_db's results, gradients and random numbers. Two processes at
a time do not disturb each other either.
"""

from __future__ import annotations

import subprocess
import warnings
from pathlib import Path

import pytest
from digests import digests, shard_of
from processes import differences, finish, printed, start

PROGRAM = Path(__file__).with_name("digests.py")
WAYS = {
    "blocking": {"NPU_LAUNCH_BLOCKING": "1"},
    "no inlining": {"NPU_SIM_INLINE": "0"},
    "one worker": {"NPU_SIM_WORKERS": "1"},
    "four workers": {"NPU_SIM_WORKERS": "4", "NPU_SIM_INLINE": "0"},
}
SHARDS = 16
QUICK = (3, 200)  # one shard of so many
QUICK_SAMPLES = 2

Digests = dict[str, str]


@pytest.fixture(scope="module")
def asynchronous() -> dict[int, Digests]:
    """Digests of runs with the default settings, by shard; each is made once."""
    return {}


def default_run(shard: int, known: dict[int, Digests]) -> Digests:
    if shard not in known:
        known[shard] = printed(finish(start(PROGRAM, shard, SHARDS)))
    return known[shard]


def run_together(*processes: subprocess.Popen) -> list[Digests]:
    """Each process ends well and leaves no shared memory behind."""
    found = [printed(finish(process)) for process in processes]
    names = [path.name for path in Path("/dev/shm").iterdir()]
    assert [name for name in names if any(str(process.pid) in name for process in processes)] == []
    return found


@pytest.mark.conformance
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("way", WAYS)
def test_same_bits_as_the_default(way, shard, asynchronous):
    found = printed(finish(start(PROGRAM, shard, SHARDS, **WAYS[way])))
    assert len(found) > 0
    assert differences(found, default_run(shard, asynchronous)) == []


def test_a_second_process_gives_the_bits_of_this_one():
    blocking = start(PROGRAM, *QUICK, QUICK_SAMPLES, **WAYS["blocking"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = dict(digests(shard_of(*QUICK), QUICK_SAMPLES))
    assert len(own) > 0
    assert [differences(found, own) for found in run_together(blocking)] == [[]]


@pytest.mark.conformance
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shard", range(0, SHARDS, 4))
def test_two_long_sweeps_at_a_time_give_the_bits_of_one(shard, asynchronous):
    found = run_together(start(PROGRAM, shard, SHARDS), start(PROGRAM, shard, SHARDS))
    assert [differences(one, default_run(shard, asynchronous)) for one in found] == [[], []]
