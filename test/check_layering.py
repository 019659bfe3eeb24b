"""Holds the source tree to its architecture: include arrows point down, files stay small and well named.

torch_npu_lite/csrc -> csrc/aten/{bridge,ops} -> csrc/kernels -> csrc/runtime -> csrc/runtime/driver

Run as `python test/check_layering.py [root]`; prints one line a violation and exits with 1 when there is any.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)
NO_FUNCTION = re.compile(r"\s*(\{|(template\s*<.*>\s*)?(namespace|class|struct|enum|union|extern)\b)")
STATEMENT_END = re.compile(r"([;{}:]|^|^ *[{}\[].*},|^#.*|^ *//.*)$")
LAMBDA = re.compile(r" *\[(?!\[)")  # begins where it ends, whatever it is assigned to
TORCH = re.compile(r"^(torch|c10|caffe2|ATen|pybind11)/|^Python\.h$")
PYTHON = re.compile(r"^(torch/csrc/(utils/pybind|Exceptions|THP|autograd/python_)|pybind11/)|^Python\.h$")

# Folder -> folders of ours it may include from. The first matching row counts, so the narrow ones come first.
LAYERS = {
    "csrc/runtime/driver": ("runtime",),
    "csrc/runtime": ("runtime",),
    "csrc/kernels": ("runtime", "kernels"),
    "csrc/aten/bridge": ("runtime", "kernels", "aten/bridge"),
    "csrc/aten/ops": ("runtime", "kernels", "aten/bridge", "aten/ops"),
    "csrc/aten": ("runtime", "kernels", "aten"),
    "torch_npu_lite/csrc": ("runtime", "kernels", "aten"),
    "test/runtime": ("runtime", "kernels"),
    "test/kernels": ("runtime", "kernels"),
}
# Of the bridge, operators know the headers that wrap one noun of the runtime for PyTorch, not how PyTorch is hooked up.
BRIDGE_OF_OPS = {
    f"aten/bridge/{noun}.h"
    for noun in ("allocator", "errors", "generator", "host_allocator", "stream", "sync_debug_mode")
}
DRIVER = "csrc/runtime/driver/driver.h"
WITHOUT_TORCH = ("csrc/runtime", "csrc/kernels", "test/runtime", "test/kernels")
WITHOUT_PYTHON = (*WITHOUT_TORCH, "csrc/aten")

CPP_LINES, FUNCTION_LINES, PYTHON_LINES, TEST_LINES, DRIVER_VIRTUALS = 500, 70, 300, 600, 25
CPP_FOLDERS = ("csrc", "torch_npu_lite/csrc", "test", "examples")
PYTHON_FOLDERS = ("torch_npu_lite", "tools", "bench", "examples", "test")


class Tree:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.cpp = {name: (root / name).read_text() for name in self.find(CPP_FOLDERS, (".h", ".cpp"))}
        self.python = {name: (root / name).read_text() for name in self.find(PYTHON_FOLDERS, (".py",))}

    def find(self, folders: tuple[str, ...], suffixes: tuple[str, ...]) -> list[str]:
        paths = [path.relative_to(self.root) for folder in folders for path in (self.root / folder).rglob("*")]
        return sorted({path.as_posix() for path in paths if path.suffix in suffixes and not foreign(path)})


def foreign(path: Path) -> bool:
    """Written by a build or an installation."""
    return path.as_posix().startswith("torch_npu_lite/include/") or any(
        part == "build" or part.startswith(".") for part in path.parts
    )


def within(name: str, folders: tuple[str, ...]) -> bool:
    return name.startswith(tuple(f"{folder}/" for folder in folders))


def includes(text: str) -> Iterator[tuple[int, bool, str]]:
    """Line, whether it is quoted, and the path of each include."""
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start(2)) + 1, match[1] == '"', match[2]


def check_includes(tree: Tree) -> Iterator[str]:
    for name, text in tree.cpp.items():
        layer = next((folder for folder in LAYERS if within(name, (folder,))), None)
        if layer is None:
            continue
        for line, quoted, path in includes(text):
            where = f"{name}:{line}: includes {path}"
            if within(name, WITHOUT_TORCH) and TORCH.match(path):
                yield f"{where}: {layer} knows neither torch nor Python; pass a callback or an interface down"
            elif within(name, WITHOUT_PYTHON) and PYTHON.match(path):
                yield f"{where}: Python belongs in torch_npu_lite/csrc"
            elif quoted and not within(path, LAYERS[layer]) and not beside(tree, name, path) and ours(tree, path):
                yield f"{where}: {layer} may include from {', '.join(LAYERS[layer])} only"
            elif layer == "csrc/aten/ops" and within(path, ("aten/bridge",)) and path not in BRIDGE_OF_OPS:
                yield f"{where}: of aten/bridge, operators may include {', '.join(sorted(BRIDGE_OF_OPS))} only"
            elif quoted and path.startswith(".") and not name.startswith("test/"):
                yield f"{where}: include by path from csrc/"


def ours(tree: Tree, path: str) -> bool:
    return f"csrc/{path}" in tree.cpp or f"torch_npu_lite/csrc/{path}" in tree.cpp


def beside(tree: Tree, name: str, path: str) -> bool:
    """Tests and the binding, which nobody includes, may name a file of their own folder alone."""
    return name.startswith(("test/", "torch_npu_lite/csrc/")) and (Path(name).parent / path).as_posix() in tree.cpp


def check_headers(tree: Tree) -> Iterator[str]:
    """No two headers of the runtime and the kernels need each other, and no driver needs what stands on its seam."""
    graph = {
        name: {f"csrc/{path}" for _, quoted, path in includes(text) if quoted}
        for name, text in tree.cpp.items()
        if within(name, ("csrc/runtime", "csrc/kernels"))
    }
    headers = {name: targets for name, targets in graph.items() if name.endswith(".h")}
    for name, targets in sorted(headers.items()):
        yield from (
            f"{name}: include cycle through {target}"
            for target in sorted(targets)
            if name in reachable(headers, target)
        )
    driver = ("csrc/runtime/driver",)
    above = {name for name in headers if not within(name, driver) and DRIVER in reachable(headers, name)}
    for name, targets in sorted(graph.items()):
        if within(name, driver):
            yield from (f"{name}: includes {t}, which stands above the driver" for t in sorted(targets & above))


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    todo = [start]
    while todo:
        for target in graph.get(todo.pop(), set()) - seen:
            seen.add(target)
            todo.append(target)
    return seen


def functions(text: str) -> Iterator[tuple[int, int]]:
    """First line and length of each outermost function; relies on the layout that clang-format gives."""
    lines = text.split("\n")
    end = -1
    for number, line in enumerate(lines):
        if number <= end or not line.endswith("{"):
            continue
        first = number
        while first and not LAMBDA.match(lines[first]) and not STATEMENT_END.search(lines[first - 1]):
            first -= 1
        head = " ".join(lines[first : number + 1])
        if "(" not in head or head.endswith("= {") or NO_FUNCTION.match(head):
            continue
        indent = re.match(" *", lines[first]).group()  # type: ignore[union-attr]
        end = next((n for n in range(number + 1, len(lines)) if lines[n].startswith(indent + "}")), len(lines))
        yield first + 1, end - first + 1


def check_sizes(tree: Tree) -> Iterator[str]:
    for name, text in (tree.cpp | tree.python).items():
        python = name.endswith(".py")
        limit = TEST_LINES if name.startswith("test/") else PYTHON_LINES if python else CPP_LINES
        if (lines := text.count("\n")) > limit:
            yield f"{name}: {lines} lines, at most {limit}; split it by what it does"
        if not python:
            yield from (
                f"{name}:{line}: a function of {length} lines, at most {FUNCTION_LINES}"
                for line, length in functions(text)
                if length > FUNCTION_LINES
            )
    driver = re.search(r"^class (NPU_API )?Driver {.*?^}", tree.cpp.get(DRIVER, ""), re.MULTILINE | re.DOTALL)
    virtuals = len(re.findall(r"^  virtual (?!~)", driver[0], re.MULTILINE)) if driver else 0
    if virtuals > DRIVER_VIRTUALS:
        yield f"{DRIVER}: {virtuals} virtual methods, at most {DRIVER_VIRTUALS}"


def check_names(tree: Tree) -> Iterator[str]:
    for name, text in (tree.cpp | tree.python).items():
        if not re.fullmatch(r"_?[a-z0-9_]+(\.py|\.h|\.cpp)", Path(name).name):
            yield f"{name}: file names are lower_case_with_underscores"
        if name.endswith(".h") and "#pragma once" not in text:
            yield f"{name}: a header starts with #pragma once"
        if within(name, ("test/runtime", "test/kernels")) and "\nTEST" in text and not name.endswith("_test.cpp"):
            yield f"{name}: holds tests, but only *_test.cpp is built"
        if name.startswith("test/") and "\ndef test_" in text and not Path(name).name.startswith("test_"):
            yield f"{name}: holds tests, but pytest collects test_*.py only"


def violations(root: Path) -> list[str]:
    tree = Tree(root)
    return [v for check in (check_includes, check_headers, check_sizes, check_names) for v in check(tree)]


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    tree = Tree(root)
    found = violations(root)
    print(*found, sep="\n", end="\n" if found else "")
    print(f"layering: {len(tree.cpp)} C++ and {len(tree.python)} Python files, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
