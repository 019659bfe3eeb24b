"""Small models for the training tests: each with a batch, and so few operators that a step fits a stream's queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

BATCH = 8


class Recurrent(nn.Module):
    """The last output of an LSTM or GRU, classified."""

    def __init__(self, cell: type[nn.RNNBase]):
        super().__init__()
        self.cell = cell(input_size=6, hidden_size=12, num_layers=2, batch_first=True)
        self.head = nn.Linear(12, 4)

    def forward(self, steps: Tensor) -> Tensor:
        outputs, _ = self.cell(steps)
        return self.head(outputs[:, -1])


class Encoder(nn.Module):
    """A causal nn.TransformerEncoder; is_causal is given, so PyTorch need not read the mask on the host."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(d_model=16, nhead=2, dim_feedforward=32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 4)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(5))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.encoder(tokens, mask=self.mask, is_causal=True)[:, -1])


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 4))


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, kernel_size=3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, kernel_size=3),
        nn.ReLU(),
        nn.Dropout(p=0.0),
        nn.Flatten(),
        nn.Linear(8 * 4 * 4, 4),
    )


def word_model() -> nn.Module:
    return nn.Sequential(nn.Embedding(20, 8), nn.Flatten(), nn.Linear(8 * 5, 4))


@dataclass(frozen=True)
class Model:
    name: str
    build: Callable[[], nn.Module]
    make_inputs: Callable[[torch.Generator], Tensor]

    def __str__(self) -> str:
        return self.name


def normal(*shape: int) -> Callable[[torch.Generator], Tensor]:
    return lambda generator: torch.randn(*shape, generator=generator)


MODELS = [
    Model("mlp", mlp, normal(BATCH, 10)),
    Model("cnn", cnn, normal(BATCH, 3, 12, 12)),
    Model("lstm", lambda: Recurrent(nn.LSTM), normal(BATCH, 4, 6)),
    Model("gru", lambda: Recurrent(nn.GRU), normal(BATCH, 4, 6)),
    Model("transformer", Encoder, normal(BATCH, 5, 16)),
    Model("embedding", word_model, lambda generator: torch.randint(20, (BATCH, 5), generator=generator)),
]

# A larger eps than PyTorch's 1e-8: some gradients are zero but for rounding (of a bias before BatchNorm, of the bias of
# attention's keys), and the adaptive optimizers would turn such noise into full steps, on the CPU just as here.
EPS = 1e-3
OPTIMIZERS = {
    "sgd": lambda parameters, foreach: torch.optim.SGD(parameters, lr=0.12, foreach=foreach),
    "momentum": lambda parameters, foreach: torch.optim.SGD(parameters, lr=0.05, momentum=0.9, foreach=foreach),
    "adam": lambda parameters, foreach: torch.optim.Adam(parameters, lr=0.01, eps=EPS, foreach=foreach),
    "adamw": lambda parameters, foreach: torch.optim.AdamW(parameters, lr=0.01, eps=EPS, foreach=foreach),
    "rmsprop": lambda parameters, foreach: torch.optim.RMSprop(parameters, lr=0.003, eps=EPS, foreach=foreach),
}


@dataclass
class Training:
    """A model in training on `device`, always from the same weights and on the same batch."""

    model: Model
    optimizer_name: str
    foreach: bool
    device: torch.device | str
    losses: list[Tensor] = field(default_factory=list)

    def __post_init__(self):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            self.module = self.model.build()
        self.optimizer = OPTIMIZERS[self.optimizer_name](self.module.parameters(), self.foreach)
        before = list(self.module.parameters())
        self.module.to(self.device)  # the optimizer, built before, must still hold these parameters
        assert all(old is new for old, new in zip(before, self.module.parameters(), strict=True))
        generator = torch.Generator().manual_seed(11)
        self.inputs = self.model.make_inputs(generator).to(self.device)
        self.labels = torch.randint(4, (BATCH,), generator=generator).to(self.device)

    def step(self) -> Tensor:
        loss = functional.cross_entropy(self.module(self.inputs), self.labels)
        self.optimizer.zero_grad(set_to_none=False)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.detach())
        return self.losses[-1]

    def run(self, steps: int) -> Training:
        for _ in range(steps):
            self.step()
        return self

    def tensors(self) -> dict[str, Tensor]:
        """Everything a step changes, where it lies."""
        named = dict(self.module.named_parameters())
        result = {f"parameter {name}": tensor.detach() for name, tensor in named.items()}
        result |= {f"gradient {name}": tensor.grad for name, tensor in named.items() if tensor.grad is not None}
        result |= {f"buffer {name}": tensor for name, tensor in self.module.named_buffers()}
        for index, state in self.optimizer.state_dict()["state"].items():
            result |= {f"optimizer {index} {name}": value for name, value in state.items() if torch.is_tensor(value)}
        return result

    def snapshot(self) -> dict[str, Tensor]:
        """Copies on the CPU, made on the current stream; waits for them. The losses are part of it."""
        copies = {name: tensor.to("cpu", copy=True) for name, tensor in self.tensors().items()}
        copies["losses"] = torch.stack(self.losses).cpu()
        return copies
