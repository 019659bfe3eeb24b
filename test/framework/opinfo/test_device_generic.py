"""PyTorch's machinery for device-generic tests takes npu as a device of its own.

Written as a user of that machinery writes tests: instantiate_device_type_tests makes of each class below one for the
CPU and one for npu, and the decorators choose by device, dtype, operator, module and optimizer.
"""

from __future__ import annotations

import unittest

import torch
from torch.testing import make_tensor
from torch.testing._internal.common_device_type import (
    OpDTypes,
    PrivateUse1TestBase,
    deviceCountAtLeast,
    dtypes,
    dtypesIfCPU,
    dtypesIfPRIVATEUSE1,
    expectedFailure,
    instantiate_device_type_tests,
    largeTensorTest,
    onlyAccelerator,
    onlyCPU,
    onlyCUDA,
    onlyCUDAAndPRIVATEUSE1,
    onlyNativeDeviceTypes,
    onlyNativeDeviceTypesAnd,
    onlyOn,
    onlyPRIVATEUSE1,
    ops,
    precisionOverride,
    skipCPUIf,
    skipIf,
    skipPRIVATEUSE1,
    skipPRIVATEUSE1If,
    tol,
    toleranceOverride,
)
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db, modules
from torch.testing._internal.common_optimizers import optim_db, optims
from torch.testing._internal.common_utils import TestCase, parametrize
from torch.testing._internal.opinfo.core import DecorateInfo

SOME_OPERATORS = [op for op in op_db if op.name in ("add", "exp", "sum", "cumsum", "matmul", "nn.functional.gelu")]
SOME_MODULES = [info for info in module_db if info.name in ("nn.Linear", "nn.Conv2d", "nn.BatchNorm2d")]
SOME_OPTIMIZERS = [info for info in optim_db if info.name in ("SGD", "AdamW")]


def class_for(scope: dict, name: str, device_type: str) -> type:
    """The class that was made of `name`. PyTorch names the first one of a process after PRIVATEUSE1, later ones NPU."""
    suffixes = ("PRIVATEUSE1", "NPU") if device_type == "npu" else (device_type.upper(),)
    return next(scope[name + suffix] for suffix in suffixes if name + suffix in scope)


class TestValues(TestCase):
    """Tests that hold on any device."""

    def test_device(self, device):
        tensor = torch.ones(2, device=device)
        self.assertEqual(tensor.device.type, self.device_type)
        self.assertEqual(tensor.device, torch.device(device))

    @dtypes(torch.float32, torch.int64, torch.complex64)
    def test_addition(self, device, dtype):
        a, b = (make_tensor((3, 4), device=device, dtype=dtype) for _ in range(2))
        self.assertEqual(a + b, (a.cpu() + b.cpu()).to(device))
        self.assertEqual((a + b).dtype, dtype)

    @parametrize("keepdim", [True, False])
    @dtypes(torch.float32)
    def test_parameters(self, device, dtype, keepdim):
        self.assertEqual(torch.ones(2, 3, device=device, dtype=dtype).sum(1, keepdim).dim(), 2 if keepdim else 1)

    @precisionOverride({torch.float16: 1e-2})
    @dtypes(torch.float16, torch.float32)
    def test_precision(self, device, dtype):
        self.assertEqual(self.precision, 1e-2 if dtype is torch.float16 else 0)
        apart = torch.tensor([1.0, 1.005], device=device, dtype=dtype)
        if dtype is torch.float16:
            self.assertEqual(apart[0], apart[1], rtol=0, atol=self.precision)
        else:
            self.assertNotEqual(apart[0], apart[1])

    @toleranceOverride({torch.float32: tol(atol=1e-1, rtol=1e-1)})
    @dtypes(torch.float32)
    def test_tolerance(self, device, dtype):
        self.assertEqual(torch.tensor(1.05, device=device), torch.tensor(1.0, device=device))

    @deviceCountAtLeast(2)
    def test_devices(self, devices):
        self.assertEqual(devices[0], self.get_primary_device())
        self.assertEqual(len(set(devices)), torch.accelerator.device_count())
        moved = torch.arange(4, device=devices[0]).to(devices[1])
        self.assertEqual(moved.device, torch.device(devices[1]))
        self.assertEqual(moved.tolist(), [0, 1, 2, 3])

    @largeTensorTest("1GB", device="cpu")
    def test_large_tensor(self, device):
        self.assertEqual(torch.zeros(1 << 26, dtype=torch.int8, device=device).add_(1).sum().item(), 1 << 26)

    @toleranceOverride({torch.float32: tol(atol=1e-4, rtol=1e-4)})
    @ops(SOME_OPERATORS, allowed_dtypes=(torch.float32, torch.int64))
    def test_operators(self, device, dtype, op):
        for sample in op.sample_inputs(device, dtype):
            on_cpu = sample.transform(lambda leaf: leaf.cpu() if isinstance(leaf, torch.Tensor) else leaf)
            actual = op(sample.input, *sample.args, **sample.kwargs)
            self.assertEqual(actual.device.type, self.device_type)
            self.assertEqual(actual.cpu(), op(on_cpu.input, *on_cpu.args, **on_cpu.kwargs))

    @ops([op for op in SOME_OPERATORS if op.error_inputs_func is not None], dtypes=OpDTypes.any_one)
    def test_operators_refuse_wrong_arguments(self, device, dtype, op):
        for error in op.error_inputs(device):
            sample = error.sample_input
            with self.assertRaisesRegex(error.error_type, error.error_regex):
                op(sample.input, *sample.args, **sample.kwargs)

    @modules(SOME_MODULES, allowed_dtypes=(torch.float32,))
    def test_modules(self, device, dtype, module_info, training):
        samples = module_info.module_inputs_func(
            module_info, device=device, dtype=dtype, requires_grad=False, training=training
        )
        for sample in samples:
            made = sample.constructor_input
            module = module_info.module_cls(*made.args, **made.kwargs).to(device, dtype).train(training)
            results = module(*sample.forward_input.args, **sample.forward_input.kwargs)
            self.assertEqual(results.device.type, self.device_type)

    @optims(SOME_OPTIMIZERS, dtypes=[torch.float32])
    def test_optimizers(self, device, dtype, optim_info):
        for sample in optim_info.optim_inputs_func(device=device):
            weight = torch.nn.Parameter(torch.ones(3, device=device, dtype=dtype))
            weight.grad = torch.ones_like(weight)
            optim_info.optim_cls([weight], **{"lr": 0.1, **sample.kwargs}).step()
            self.assertNotEqual(weight, torch.ones(3, device=device))


class TestChoices(TestCase):
    """Each test says with a decorator where it runs; it fails where it should not have run."""

    def on(self, *device_types: str) -> None:
        self.assertIn(self.device_type, device_types)

    @onlyOn(["npu"])
    def test_only_on(self, device):
        self.on("npu")

    @onlyPRIVATEUSE1
    def test_only_privateuse1(self, device):
        self.on("npu")

    @onlyCUDAAndPRIVATEUSE1
    def test_only_cuda_and_privateuse1(self, device):
        self.on("npu")

    @onlyAccelerator
    def test_only_accelerator(self, device):
        self.on("npu")

    @onlyNativeDeviceTypes
    def test_only_native(self, device):
        self.on("cpu", "npu")

    @onlyNativeDeviceTypesAnd(["other"])
    def test_only_native_and_another(self, device):
        self.on("cpu", "npu")

    @onlyCPU
    def test_only_cpu(self, device):
        self.on("cpu")

    @skipCPUIf(True, "not on the CPU")
    def test_skipped_on_cpu(self, device):
        self.on("npu")

    @skipPRIVATEUSE1
    def test_skipped_on_privateuse1(self, device):
        self.on("cpu")

    @skipPRIVATEUSE1If(True, "not on npu")
    def test_skipped_on_privateuse1_if(self, device):
        self.on("cpu")

    @skipIf(True, "not on npu", device_type="npu")
    def test_skipped_if(self, device):
        self.on("cpu")

    @onlyCUDA
    def test_only_cuda(self, device):
        self.on("cuda")

    @expectedFailure("npu")
    def test_expected_failure(self, device):
        self.on("cpu")

    @dtypes(torch.float32)
    @dtypesIfCPU(torch.float64)
    @dtypesIfPRIVATEUSE1(torch.float16, torch.bfloat16)
    def test_dtypes_of_devices(self, device, dtype):
        self.on("cpu" if dtype is torch.float64 else "npu")


instantiate_device_type_tests(TestValues, globals())
instantiate_device_type_tests(TestChoices, globals())


def configured_classes() -> dict[str, type]:
    """Classes by name, made under a configuration. One of their tests fails on purpose, so pytest must not see them."""

    class TestConfigured(TestCase):
        @ops(SOME_OPERATORS, allowed_dtypes=(torch.float32,))
        def test_operators(self, device, dtype, op):
            self.assertEqual(op.name, "add")

        def test_excluded(self, device):
            self.fail("excluded by its name")

    class TestExcluded(TestCase):
        def test_nothing(self, device):
            self.fail("the class is excluded")

    generic = (TestConfigured, TestExcluded)
    scope = {test_class.__name__: test_class for test_class in generic}
    PrivateUse1TestBase.set_test_configs(
        op_overrides={"exp": [DecorateInfo(unittest.expectedFailure, "TestConfigured", "test_operators")]},
        op_allowlist=["add", "exp"],
        test_exclusions={"TestConfigured": ["test_excluded"], "TestExcluded": "*"},
    )
    try:
        for test_class in generic:
            instantiate_device_type_tests(test_class, scope, only_for="npu")
    finally:
        PrivateUse1TestBase.set_test_configs()
    return scope


def names_of(test_class: type) -> set[str]:
    return set(unittest.defaultTestLoader.getTestCaseNames(test_class))


def result_of(test_class: type) -> unittest.TestResult:
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(test_class).run(result)
    assert result.errors == result.failures == result.unexpectedSuccesses == []
    return result


def names_in(reported: list[tuple[unittest.TestCase, str]]) -> set[str]:
    return {test._testMethodName for test, _ in reported}


def ran(test_class: type) -> set[str]:
    """Names of the tests that run on their device: neither skipped nor expected to fail."""
    result = result_of(test_class)
    return names_of(test_class) - names_in(result.skipped) - names_in(result.expectedFailures)


def test_names_carry_device_and_dtype():
    made = names_of(class_for(globals(), "TestValues", "npu"))
    assert {"test_device_npu", "test_addition_npu_float32", "test_operators_exp_npu_int64"} <= made
    assert {"test_parameters_keepdim_True_npu_float32", "test_modules_nn_Linear_npu_float32"} <= made
    assert "test_optimizers_AdamW_npu_float32" in made


def test_decorators_choose_by_device():
    both = {"test_only_native_{0}", "test_only_native_and_another_{0}", "test_expected_failure_{0}"}
    chosen = {
        "npu": {
            "test_only_on_{0}", "test_only_privateuse1_{0}", "test_only_cuda_and_privateuse1_{0}",
            "test_only_accelerator_{0}", "test_skipped_on_cpu_{0}", "test_dtypes_of_devices_{0}_float16",
            "test_dtypes_of_devices_{0}_bfloat16",
        },
        "cpu": {
            "test_only_cpu_{0}", "test_skipped_on_privateuse1_{0}", "test_skipped_on_privateuse1_if_{0}",
            "test_skipped_if_{0}", "test_dtypes_of_devices_{0}_float64",
        },
    }  # fmt: skip
    for device, names in chosen.items():
        expected = {name.format(device) for name in both | names}
        assert ran(class_for(globals(), "TestChoices", device)) == expected


def test_configuration_allows_overrides_and_excludes():
    made = configured_classes()
    configured = class_for(made, "TestConfigured", "npu")
    assert names_of(configured) == {"test_operators_add_npu_float32", "test_operators_exp_npu_float32"}
    assert names_in(result_of(configured).expectedFailures) == {"test_operators_exp_npu_float32"}
    assert ran(configured) == {"test_operators_add_npu_float32"}
    assert not [name for name in made if name.startswith("TestExcluded")]
