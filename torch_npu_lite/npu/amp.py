"""Mixed precision: ``torch.amp`` for npu devices, under the names and with the defaults of ``torch.cuda.amp``."""

from functools import partial

import torch

from torch_npu_lite.npu.device import is_available

custom_fwd = partial(torch.amp.custom_fwd, device_type="npu")
custom_bwd = partial(torch.amp.custom_bwd, device_type="npu")


class autocast(torch.amp.autocast_mode.autocast):  # noqa: N801
    def __init__(self, enabled: bool = True, dtype: torch.dtype = torch.float16, cache_enabled: bool = True) -> None:
        super().__init__("npu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("npu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def amp_definitely_not_available() -> bool:
    return not is_available()
