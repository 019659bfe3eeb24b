"""The table on the terminal and the JSON file."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

Report = dict[str, Any]  # malloc mode -> {"rows": [...], "latencies": [...]}


def verdict(row: dict[str, Any]) -> str:
    if row.get("error"):
        return "[red]failed"
    if row["goal"] is None:
        return ""
    if row["ratio"] <= row["goal"]:
        return "[green]met"
    return "[yellow]near" if row["low"] <= row["goal"] else "[red]missed"


def time_text(us: float) -> str:
    return f"{us:.2f} us" if us < 1000 else f"{us / 1000:.2f} ms"


def ratio_text(row: dict[str, Any]) -> str:
    if row.get("error"):
        return row["error"]
    return f"{row['ratio']:.2f}  [dim]{row['low']:.2f}-{row['high']:.2f}"


def show(report: Report, device: str) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=150)
    modes = list(report)
    table = Table(title=f"{device} / CPU eager: below 1 is faster (median and 95% interval)")
    table.add_column("case", no_wrap=True)
    for mode in modes:
        table.add_column(f"CPU eager\n{mode} malloc", justify="right")
        table.add_column(f"{device}", justify="right")
        table.add_column("ratio", justify="right", no_wrap=True)
    table.add_column("goal", justify="right")
    table.add_column("verdict")
    for rows in zip(*(report[mode]["rows"] for mode in modes), strict=True):
        cells = []
        for row in rows:
            failed = row.get("error") is not None
            cells += ["", ""] if failed else [time_text(row["cpu_us"]), time_text(row["npu_us"])]
            cells.append(ratio_text(row))
        goal = rows[0]["goal"]
        table.add_row(rows[0]["name"], *cells, "" if goal is None else f"{goal:.2f}", verdict(rows[0]))
    console.print(table)
    latencies = report[modes[0]]["latencies"]
    if latencies:
        table = Table(title="Latencies, Python to Python")
        table.add_column("what")
        table.add_column("value", justify="right")
        for latency in latencies:
            table.add_row(latency["name"], f"{latency['value']:,.1f} {latency['unit']}")
        console.print(table)
    console.print("Verdicts compare with CPU eager on the first malloc. Times on a busy machine mean little.")
