"""The arithmetic of `bench/accuracy.py`: rows that others measured, errors, verdicts, and what sums them up."""

import csv
import dataclasses
import math
import statistics

# Estimators whose answers for the same runs are in the file, by the name of their column.
PEERS = {"xMem": "xmem", "DNNMem": "dnnmem", "SchedTune": "schedtune", "LLMem": "llmem"}
ZERO_GRAD = {"start": "start", "after": "before-backward", "end": "end"}


@dataclasses.dataclass(frozen=True)
class Row:
    """A training run on a real card: what it was, what it took, and what estimators had said."""

    is_transformer: bool
    model: str
    optimizer: str
    batch: int
    gpu: str
    # The card's; `None` where nobody's verdict is asked for.
    memory: int | None
    zero_grad: str
    # Most that was in use beyond the start, of the whole card; where memory ran out a lower bound.
    truth: int
    ran_out: bool
    # Bytes by estimator, `None` where it had no answer.
    peers: dict
    # What an estimator itself said of running out of memory, where it did.
    warned: dict = dataclasses.field(default_factory=dict)
    # Whether cuBLAS had workspaces; their earlier runs set `CUBLAS_WORKSPACE_CONFIG=:0:0`.
    has_workspaces: bool = False

    @property
    def name(self):
        return f"{self.model.split('/')[-1]} {self.optimizer} {self.batch}"


def read(path):
    """The rows of `bench/data/measured.csv`."""
    with open(path, newline="", encoding="utf-8") as file:
        return [row(line) for line in csv.DictReader(file)]


def read_apart(path):
    """The rows of `bench/data/kept_apart.csv`: runs that fit, without anybody's estimates."""
    with open(path, newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    return [
        Row(
            is_transformer=each["stratum"] == "Transformer",
            model=each["model"],
            optimizer=each["optimizer"],
            batch=int(each["batch"]),
            gpu=card(each["gpu"]),
            memory=None,
            zero_grad="end" if each["stratum"] == "Transformer" else "before-backward",
            truth=int(each["ground_bytes"]),
            ran_out=False,
            peers={},
        )
        for each in lines
    ]


def card(name):
    return name.removeprefix("NVIDIA-GeForce-").replace("-", " ")


def row(line):
    peers = {name: float(line[f"{column}_est_bytes"] or -1) for name, column in PEERS.items()}
    return Row(
        is_transformer=line["stratum"] == "Transformer",
        model=line["model"],
        optimizer=line["optimizer"],
        batch=int(line["batch"]),
        gpu=card(line["gpu"]),
        memory=int(line["total_gpu_memory"]),
        zero_grad=ZERO_GRAD[line["zero_grad_effective"].partition("_")[0]],
        truth=int(line["ground_bytes"]),
        ran_out=line["real_oom"] == "True",
        peers={name: int(bytes) if 0 < bytes else None for name, bytes in peers.items()},
        warned={"xMem": line["xmem_oom"] == "True"},
        has_workspaces=bool(line["zero_grad_mode"]),
    )


def error(estimate, truth):
    """By how much an estimate is too high, as a fraction of the truth."""
    return (estimate - truth) / truth


def summary(errors):
    """Median, mean, 90th percentile and worst of absolute errors."""
    sizes = sorted(map(abs, errors))
    if not sizes:
        return [None] * 4
    # The smallest error that at least nine in ten do not exceed.
    ninetieth = sizes[math.ceil(0.9 * len(sizes)) - 1]
    return [statistics.median(sizes), statistics.fmean(sizes), ninetieth, sizes[-1]]


def says_fits(peer, row):
    """An estimator's verdict: its own where it gave one, else its number against the card's."""
    return not row.warned.get(peer, row.memory < row.peers[peer])
