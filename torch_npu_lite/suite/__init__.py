"""Runs large test suites on npu in child processes that may crash or hang, and compares with the CPU.

python -m torch_npu_lite.suite pytorch --src DIR runs test files of a PyTorch checkout; see docs/conformance.md.
"""
