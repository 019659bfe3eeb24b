"""Trains a small network on handwritten digits, the way one trains on an accelerator.

A copy stream brings the next batch to the device while the default stream computes on this one; events order the two.
At the end it says how much of the copy time was hidden behind computation, and writes a timeline to look at.

    python examples/train_digits.py                    # on npu
    python examples/train_digits.py --no-overlap       # copies in the stream that computes
    python examples/train_digits.py --device cpu       # the same training, for comparison
"""

# mypy: disable-error-code="attr-defined"
from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from torch_npu_lite import timeline
from torch_npu_lite.timeline import Timeline

IMAGE_SIZE = 96
ROUTES = ("view", "kernel", "iterator", "library", "synchronous", "fallback")
Batch = tuple[Tensor, Tensor]


def load_data() -> tuple[TensorDataset, TensorDataset]:
    """The 1,797 real digits inside scikit-learn, 8x8 pixels each, enlarged to 3x96x96. Every fifth is for testing."""
    digits = load_digits()
    images = torch.from_numpy(digits.images).float().unsqueeze(1) / 16 - 0.5
    images = nn.functional.interpolate(images, size=(IMAGE_SIZE, IMAGE_SIZE), mode="bilinear")
    images = images.expand(-1, 3, -1, -1).contiguous()
    labels = torch.from_numpy(digits.target)
    for_testing = torch.arange(len(labels)) % 5 == 0
    return (
        TensorDataset(images[~for_testing], labels[~for_testing]),
        TensorDataset(images[for_testing], labels[for_testing]),
    )


def make_model() -> nn.Module:
    def block(inputs: int, outputs: int) -> nn.Module:
        convolution = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1)
        return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))

    return nn.Sequential(
        nn.Conv2d(3, 16, kernel_size=5, stride=4, padding=2),  # 96x96 -> 24x24
        nn.ReLU(),
        block(16, 32),
        block(32, 64),
        nn.AdaptiveAvgPool2d(3),
        nn.Flatten(),
        nn.Linear(64 * 3 * 3, 10),
    )


def move(batch: Batch, device: torch.device) -> Batch:
    images, labels = batch
    return images.to(device, non_blocking=True), labels.to(device, non_blocking=True)


def move_ahead(batches: Iterator[Batch], copy_stream: torch.Stream) -> Iterator[Batch]:
    """Yields batches on the device. While the caller computes on one, the copy stream brings the next."""
    compute_stream = torch.npu.current_stream(copy_stream.device)

    def start_copy() -> tuple[Batch, torch.Event] | None:
        host_batch = next(batches, None)
        if host_batch is None:
            return None
        with torch.npu.stream(copy_stream):
            return move(host_batch, copy_stream.device), copy_stream.record_event()

    copied = start_copy()
    while copied is not None:
        batch, is_here = copied
        copied = start_copy()
        compute_stream.wait_event(is_here)  # orders the device; this thread goes on at once
        for tensor in batch:
            tensor.record_stream(compute_stream)  # or the copy stream could reuse the memory too early
        yield batch


@dataclass
class Result:
    losses: list[float]
    accuracy: float
    samples_per_second: float


class Trainer:
    def __init__(self, device: torch.device, epochs: int, batch_size: int, overlap: bool):
        self.device = device
        self.epochs = epochs
        self.batch_size = batch_size
        self.copy_stream = torch.npu.Stream(device) if overlap and device.type == "npu" else None
        # Initial weights and the order of the data come from CPU generators: they are the same on every device.
        torch.manual_seed(0)
        self.model = make_model().to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3, weight_decay=1e-2)
        training, testing = load_data()
        pinned = device.type == "npu"
        order = torch.Generator().manual_seed(1)
        self.training = DataLoader(
            training, batch_size, shuffle=True, drop_last=True, generator=order, pin_memory=pinned
        )
        self.testing = DataLoader(testing, batch_size, pin_memory=pinned)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, epochs * len(self.training))

    def batches(self, loader: DataLoader) -> Iterator[Batch]:
        if self.copy_stream is not None:
            return move_ahead(iter(loader), self.copy_stream)
        return (move(batch, self.device) for batch in loader)

    def step(self, images: Tensor, labels: Tensor) -> Tensor:
        loss = nn.functional.cross_entropy(self.model(images), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return loss.detach()

    def train_epoch(self, progress: Progress) -> list[float]:
        self.model.train()
        losses = []
        task = progress.add_task("training", total=len(self.training))
        for images, labels in self.batches(self.training):
            losses.append(self.step(images, labels))
            progress.advance(task)
        progress.remove_task(task)
        return torch.stack(losses).tolist()  # the one place per epoch where the host waits for the device

    @torch.no_grad()
    def accuracy(self) -> float:
        self.model.eval()
        correct = torch.zeros((), dtype=torch.int64, device=self.device)
        total = 0
        for images, labels in self.batches(self.testing):
            correct += (self.model(images).argmax(dim=1) == labels).sum()
            total += len(labels)
        return correct.item() / total

    def save(self, path: Path) -> None:
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, path)

    def load(self, path: Path) -> None:
        checkpoint = torch.load(path, map_location=self.device)
        self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])


def train(trainer: Trainer, checkpoint: Path, progress: Progress) -> Result:
    losses: list[float] = []
    bar = progress.add_task("epochs", total=trainer.epochs)
    start = time.perf_counter()
    for epoch in range(trainer.epochs):
        losses += trainer.train_epoch(progress)
        progress.update(bar, advance=1, description=f"epoch {epoch + 1}, loss {losses[-1]:.4f}")
    seconds = time.perf_counter() - start
    samples = len(losses) * trainer.batch_size

    accuracy = trainer.accuracy()
    trainer.save(checkpoint)
    trainer.model = make_model().to(trainer.device)  # new weights, to see that the saved ones come back
    trainer.optimizer = torch.optim.AdamW(trainer.model.parameters())
    trainer.load(checkpoint)
    if trainer.accuracy() != accuracy:
        raise RuntimeError("the reloaded checkpoint gives another accuracy than the model that was saved")
    return Result(losses, accuracy, samples / seconds)


def calls_by_route() -> dict[str, int]:
    counts = torch.npu.op_stats().values()
    return {route: sum(operator[route] for operator in counts) for route in ROUTES}


def few_steps(tasks: Timeline, milliseconds: float = 150) -> Timeline:
    """What ran for a moment early on, to look at."""
    copies = [task.start_ns for task in tasks.tasks if task.engine == "dma_in"]
    start = copies[len(copies) // 8]
    return Timeline(task for task in tasks.tasks if start <= task.start_ns < start + milliseconds * 1e6)


def report(result: Result, device: torch.device, tasks: Timeline, output: Path) -> Table:
    table = Table(show_header=False, title=f"training on {device}")
    table.add_row("test accuracy", f"{result.accuracy:.2%}")
    table.add_row("training samples/s", f"{result.samples_per_second:,.0f}")
    if device.type == "npu":
        table.add_row("peak device memory", f"{torch.npu.max_memory_allocated(device) / 2**20:,.1f} MiB")
        table.add_row("operator calls", ", ".join(f"{route} {count:,}" for route, count in calls_by_route().items()))
        copies = tasks.overlap()
        table.add_row("copy time hidden", f"{copies.fraction:.0%} of {copies.dma_ns / 1e6:,.0f} ms")
        few_steps(tasks).save_png(output / "timeline.png")
        tasks.save_trace(output / "timeline.json")
        table.add_row("timeline of a few steps", f"{output / 'timeline.png'}")
        table.add_row("trace for ui.perfetto.dev", f"{output / 'timeline.json'}")
    return table


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", type=torch.device, default="npu", help="cpu, npu or npu:1 (default: npu)")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--no-overlap", action="store_true", help="copy in the stream that computes")
    parser.add_argument("--output", type=Path, default=Path("build/demo"), help="folder for what is written")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    device = arguments.device
    arguments.output.mkdir(parents=True, exist_ok=True)
    recording: contextlib.AbstractContextManager = contextlib.nullcontext()
    if device.type == "npu":
        torch.npu.set_device(device)
        recording = timeline.record()

    console = Console()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress, recording as tasks:
        trainer = Trainer(device, arguments.epochs, arguments.batch_size, overlap=not arguments.no_overlap)
        result = train(trainer, arguments.output / "checkpoint.pt", progress)
    console.print(report(result, device, tasks, arguments.output))
    (arguments.output / "losses.json").write_text(json.dumps(result.losses))


if __name__ == "__main__":
    main()
