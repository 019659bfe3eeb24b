"""pytest plug-in with which make conformance runs torchcts: leaves to the run what torchcts would do again."""

from __future__ import annotations

import os

import pytest

# Its probes of each capability start a process each, and only print.
os.environ["_TORCHCTS_SUBPROCESS"] = "1"


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    # All results so far are written after each test, which takes a time that grows with their square.
    conftest = next(plugin for plugin in config.pluginmanager.get_plugins() if hasattr(plugin, "flush_results_to_disk"))
    conftest.flush_results_to_disk = lambda: None
