"""Writes the operator wrappers of the npu device from csrc/aten/ops/npu_functions.yaml and npu_layouts.yaml.

    python tools/gen_ops.py --output-dir build/generated --shards 10 [--list-outputs]

The operator list is the one inside the installed PyTorch (torchgen). The output depends on nothing else, and files
whose text would not change are left alone.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

OPS = Path(__file__).resolve().parent.parent / "csrc" / "aten" / "ops"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output-dir", type=Path, required=True)
    parser.add_argument("--shards", type=int, default=10, help="number of files the wrappers are spread over")
    parser.add_argument("--list-outputs", action="store_true", help="print the files instead of writing them")
    options = parser.parse_args()

    from gen import files, layouts, table
    from gen.schema import Schemas

    rows, layout_operators = [], []
    if not options.list_outputs:
        schemas = Schemas()
        rows = table.load(OPS / "npu_functions.yaml", schemas)
        layout_operators = layouts.load(OPS / "npu_layouts.yaml", schemas)
        table.check_apart(rows, {operator.name for operator in layout_operators if operator.key == "Dense"})
    for name, make in files.all_files(rows, layout_operators, options.shards).items():
        if options.list_outputs:
            print(name)
        else:
            files.write_if_changed(options.output_dir / name, make())


if __name__ == "__main__":
    try:
        main()
    except ValueError as error:
        sys.exit(f"error: {error}")
