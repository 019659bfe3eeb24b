"""Inductor, torch.compile's default backend, asks the device's module for a code generator (`torch.npu.Scheduling`).
There is none; what it gets says what works instead."""

from typing import Any, NoReturn

from torch._inductor.codegen import wrapper
from torch._inductor.codegen.common import DeviceOpOverrides, register_device_op_overrides


def refuse() -> NoReturn:
    raise NotImplementedError(
        "torch.compile's backend 'inductor', the default, generates no code for npu devices. Use "
        "torch.compile(..., backend='aot_eager'), which traces forward and backward and runs the operators of npu, or "
        "backend='eager'."
    )


class Scheduling:
    def __init__(self, *_: Any) -> None:
        refuse()


class PythonWrapperCodegen(wrapper.PythonWrapperCodegen):
    @classmethod
    def create(cls, *_: Any) -> NoReturn:
        refuse()


class CppWrapperCodegen(PythonWrapperCodegen):
    pass


class WrapperFxCodegen(PythonWrapperCodegen):
    pass


register_device_op_overrides("npu", DeviceOpOverrides())  # looked up before the classes above
