"""Each entry of exceptions.yaml and host_waits.yaml names something that the sweeps run."""

from __future__ import annotations

import fnmatch

import pytest
from compare import WAITS
from exceptions import TABLE
from torch.testing._internal.autograd_function_db import autograd_function_db
from torch.testing._internal.common_methods_invocations import (
    foreach_binary_op_db,
    foreach_reduce_op_db,
    op_db,
    python_ref_db,
)
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db

OPERATORS = (*op_db, *python_ref_db, *foreach_binary_op_db, *foreach_reduce_op_db, *autograd_function_db)
NAMES = {op.full_name for op in OPERATORS} | {entry.name for entry in (*module_db, *optim_db)}
ENTRIES = [
    *(
        pytest.param(entry, id=f"{area}: {entry}")
        for area, kinds in TABLE.items()
        if area not in ("kinds", "models")  # models are those of packages that are not always there
        for groups in kinds.values()
        for group in groups
        for entry in group["entries"]
    ),
    *(pytest.param(entry, id=f"waits: {entry}") for group in WAITS for entry in group["entries"]),
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_entry_names_something(entry):
    """Of "entry mode layout" the first word is the name."""
    name = entry.partition(" ")[0]
    assert any(fnmatch.fnmatchcase(known, name) for known in NAMES), f"{name}: no operator, module or optimizer"
