"""The calls that op_db expects to be refused: npu refuses them as the CPU does, word by word."""

from __future__ import annotations

import pytest
from modes import run
from outcomes import Outcome, difference_of_errors
from torch.testing._internal.common_methods_invocations import op_db

ENTRIES = [op for op in op_db if op.error_inputs_func is not None]


def called(op, sample, arguments, keywords) -> Outcome:
    return Outcome(op(*arguments, **keywords))


@pytest.mark.parametrize("op", [pytest.param(op, id=op.full_name) for op in ENTRIES])
def test_refused_like_cpu(op, record_property):
    differences, refused = [], 0
    for i, error_input in enumerate(op.error_inputs("cpu")):
        expected = run(called, op, error_input.sample_input, "cpu")
        if expected.error is None:  # an operator that returns NotImplemented
            continue
        refused += 1
        found = difference_of_errors(run(called, op, error_input.sample_input, "npu"), expected)
        if found:
            differences.append(f"sample {i}: {found}")
    record_property("refused", refused)
    assert not differences, "\n".join(differences)
