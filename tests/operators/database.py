"""PyTorch's own database of operators, on the phantom and on the CPU: `fathom run -- python database.py [--every N] [--json FILE]`.

What came of each operator is a line of JSON. `run.py` starts this and makes the page of it; `compare.py` says what is
compared.
"""

import argparse
import collections
import json
import sys
import warnings

import compare
import torch
from compare import name_of
from torch.testing._internal.common_methods_invocations import op_db


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="", help="names that have this in them")
    parser.add_argument("--json")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    found = {}
    for op in [op for op in op_db if options.only in name_of(op)][options.first :: options.every]:
        found[name_of(op)] = compare.judge(op)
        if options.only:
            print(name_of(op), *found[name_of(op)], flush=True)
    print(json.dumps(collections.Counter(verdict for verdict, _ in found.values())))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"torch": str(torch.__version__), "total": len(op_db), "operators": found}, file, indent=1)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
