"""Holds the source tree to its architecture: include arrows point down, files stay small and well named.

torch_npu_lite/csrc -> csrc/aten/{bridge,ops} -> csrc/kernels -> csrc/runtime -> csrc/runtime/driver

Run as `python test/check_layering.py [root]`; prints one line a violation and exits with 1 when there is any.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)
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
    "test/runtime": ("runtime", "test"),
    "test/kernels": ("runtime", "kernels", "test"),
}
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
        part == "build" or part.startswith(".") for part in path.parts)


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
            elif quoted and not within(path, LAYERS[layer]) and ours(tree, name, path):
                yield f"{where}: {layer} may include from {', '.join(LAYERS[layer])} only"
            elif quoted and path.startswith("."):
                yield f"{where}: include by path from csrc/"


def ours(tree: Tree, name: str, path: str) -> bool:
    beside = (Path(name).parent / path).as_posix()
    return any(candidate in tree.cpp for candidate in (f"csrc/{path}", beside, f"torch_npu_lite/csrc/{path}"))


def unit(name: str) -> str:
    """A header and its source count as one: foo.h, foo.cpp and foo_avx2.cpp are foo."""
    return re.sub(r"(_avx2|_avx512)?\.(h|cpp)$", "", name)


def check_cycles(tree: Tree) -> Iterator[str]:
    """Inside the runtime and the kernels no two units need each other, and no driver needs what stands on the seam."""
    graph: dict[str, set[str]] = {}
    for name, text in tree.cpp.items():
        if within(name, ("csrc/runtime", "csrc/kernels")):
            targets = {unit(f"csrc/{path}") for _, quoted, path in includes(text) if quoted}
            graph.setdefault(unit(name), set()).update(targets - {unit(name)})
    yield from (f"{a}: include cycle through {b}" for a, b in back_arrows(graph))
    seam = "csrc/runtime/driver/driver"
    above = {name for name in graph if not within(name, ("csrc/runtime/driver",)) and seam in reachable(graph, name)}
    for name in sorted(graph):
        if within(name, ("csrc/runtime/driver",)):
            yield from (f"{name}: includes {target}, which stands above the driver"
                        for target in sorted(graph[name] & above))


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    todo = [start]
    while todo:
        for target in graph.get(todo.pop(), set()) - seen:
            seen.add(target)
            todo.append(target)
    return seen


def back_arrows(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    return [(a, b) for a in sorted(graph) for b in sorted(graph[a]) if a in reachable(graph, b)]


def functions(text: str) -> Iterator[tuple[int, int]]:
    """First line and length of each outermost function body; relies on the layout that clang-format gives."""
    start, indent = 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        if not start and (match := re.match(r"^( {0,4})(?![ }]|(?:namespace|class|struct|enum|union|extern)\b)", line)):
            if line.endswith("{") and ("(" in line or line.startswith((" " * 4, ")"))):
                start, indent = number, match[1]
        elif start and line.startswith(indent + "}"):
            yield start, number - start + 1
            start = 0


def check_sizes(tree: Tree) -> Iterator[str]:
    for name, text in (tree.cpp | tree.python).items():
        python = name.endswith(".py")
        limit = TEST_LINES if name.startswith("test/") else PYTHON_LINES if python else CPP_LINES
        if (lines := text.count("\n")) > limit:
            yield f"{name}: {lines} lines, at most {limit}; split it by what it does"
        if not python:
            yield from (f"{name}:{line}: a function of {length} lines, at most {FUNCTION_LINES}"
                        for line, length in functions(text) if length > FUNCTION_LINES)
    virtuals = len(re.findall(r"^\s*virtual (?!~)", tree.cpp.get("csrc/runtime/driver/driver.h", ""), re.MULTILINE))
    if virtuals > DRIVER_VIRTUALS:
        yield f"csrc/runtime/driver/driver.h: {virtuals} virtual methods, at most {DRIVER_VIRTUALS}"


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
    return [v for check in (check_includes, check_cycles, check_sizes, check_names) for v in check(tree)]


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    tree = Tree(root)
    found = violations(root)
    print(*found, sep="\n", end="\n" if found else "")
    print(f"layering: {len(tree.cpp)} C++ and {len(tree.python)} Python files, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
