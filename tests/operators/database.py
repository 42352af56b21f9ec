"""PyTorch's own database of operators, on the phantom and on the CPU: `fathom run -- python database.py [--every N] [--json FILE]`.

`run.py` starts this for all of them and makes the page of it; `compare.py` says what is compared.
"""

import argparse
import collections
import importlib.util
import json
import sys
import types
import unittest
import warnings

# PyTorch's helpers for tests want it for texts that tests write themselves; nothing here does.
if importlib.util.find_spec("expecttest") is None:
    sys.modules["expecttest"] = types.ModuleType("expecttest")
    sys.modules["expecttest"].TestCase = unittest.TestCase

import compare
import torch
from compare import name_of
from torch.testing._internal.common_methods_invocations import op_db


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="", help="those that have this in their name")
    parser.add_argument("--names", default="", help="these as well, by their whole names, with commas between")
    parser.add_argument("--json")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    chosen = [op for op in op_db if options.only in name_of(op)][options.first :: options.every]
    chosen += [op for op in op_db if name_of(op) in options.names.split(",") and op not in chosen]
    found = {}
    for op in chosen:
        found[name_of(op)] = compare.judge(op)
        if options.only:
            print(name_of(op), *found[name_of(op)], flush=True)
    print(json.dumps(collections.Counter(verdict for verdict, _ in found.values())))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            version = str(torch.__version__).partition("+")[0]
            json.dump({"torch": version, "total": len(op_db), "operators": found}, file, indent=1)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
