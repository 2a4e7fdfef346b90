"""Training speed: tokens per second of manyheads and of its peers, at the same sizes, on the same batches.

    make bench-training                                       all peers, tiny and base, into benchmarks/speed/
    make bench-training ARGS="--sizes tiny --peers torch transformers --turns 5"
    make bench-training ARGS="--source before=/other/tree/src"     another version of manyheads as a peer

One step is forward, label-smoothed loss (0.1), backward, clipping and Adam, on padded ids that are prepared in advance.
Every worker is a process with one thread on one core. Workers alternate, with a few steps per turn on the same batches,
and CPU time is compared. A ratio is the median over turns.

Utilization is the FLOP of the model per CPU second, divided by those of SGEMM in the same run. FLOP are counted for
the matrix products on real tokens, without padding, as three times the forward pass (`manyheads.bench.count_flop`).
Dropout is applied as in the paper: to the input of each stack and to the output of each sublayer. The other dropouts of
the peers (attention weights, inside the feed-forward) are off for all, or on for all with --inner-dropout.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import draw
from batches import drawn_pairs, make_batches, real_pairs, save_batches
from frame import HERE, ROOT, Worker, ask_in_turns, ask_or_fail, stamp, store
from peers import FOLDER, PeerError, prepare

from manyheads import bench
from manyheads.data import PairBatch
from manyheads.model import ModelSettings

RESULT = HERE / "training.json"
OURS = "manyheads"
N_WARMING = 1  # warm-up turns, which are not counted


@dataclass(frozen=True)
class Size:
    """The sizes of a model and of its batches, and the number of steps to measure."""

    layers: int  # per stack
    width: int
    feed_forward_width: int
    n_heads: int
    vocab_size: int
    batch_tokens: int  # with padding, on each side
    steps_per_turn: int
    n_turns: int
    dropout: float = 0.1
    inner_dropout: float = 0.0
    smoothing: float = 0.1
    learning_rate: float = 3e-4


SIZES = {
    "tiny": Size(4, 128, 256, 4, 6_000, 1250, steps_per_turn=2, n_turns=15),
    "base": Size(6, 512, 2048, 8, 16_000, 1500, steps_per_turn=1, n_turns=9),
}
# Each peer: its environment ("": that of manyheads) and its worker script.
WORKERS = {
    "torch": ("", "training_torch.py"),
    "transformers": ("transformers", "training_transformers.py"),
    "joeynmt": ("joeynmt", "training_joeynmt.py"),
    "opennmt-py": ("opennmt-py", "training_opennmt.py"),
    "eole": ("eole", "training_eole.py"),
}


def count_flop(size: Size, batch: PairBatch) -> int:
    """The FLOP of a training step on this batch."""
    settings = ModelSettings(
        vocab_size=size.vocab_size,
        n_encoder_layers=size.layers,
        n_decoder_layers=size.layers,
        width=size.width,
        feed_forward_width=size.feed_forward_width,
        n_heads=size.n_heads,
    )
    return bench.count_flop(settings, *((ids != 0).sum(axis=1) for ids in (batch.source, batch.target_output)))


def describe(batches: Sequence[PairBatch], size: Size) -> list[dict[str, Any]]:
    return [
        {
            "rows": len(batch.source),
            "source_tokens": int((batch.source != 0).sum()),
            "target_tokens": batch.n_tokens,
            "source_positions": batch.source.size,
            "target_positions": batch.target_output.size,
            "flop": count_flop(size, batch),
        }
        for batch in batches
    ]


def start(
    names: Sequence[str], sources: dict[str, Path], given: argparse.Namespace, logs: Path, failed: dict[str, str]
):
    """Start the workers, each in its environment; peers that cannot be installed are added to `failed`."""
    ours = {OURS: ROOT / "src", **sources}
    workers = {
        name: Worker(sys.executable, "training_manyheads.py", logs / name, {"MANYHEADS_SRC": str(source)})
        for name, source in ours.items()
    }
    if given.bfloat16:
        environment = {"MANYHEADS_SRC": str(ROOT / "src"), "MANYHEADS_PRECISION": "bfloat16"}
        workers[f"{OURS} in bfloat16"] = Worker(sys.executable, "training_manyheads.py", logs / "bfloat16", environment)
    for name in names:
        home, script = WORKERS[name]
        try:
            python = prepare(home, given.folder.resolve()) if home else sys.executable
        except PeerError as error:
            failed[name] = str(error)
            print(f"{name}: {error}", file=sys.stderr)
            continue
        workers[name] = Worker(python, script, logs / name)
    workers["sgemm"] = Worker(sys.executable, "sgemm.py", logs / "sgemm")
    return workers


def measure(size: Size, given: argparse.Namespace, sources: dict[str, Path]) -> dict[str, Any]:
    """Measure all workers at one size."""
    n_turns = given.turns or size.n_turns
    pairs = real_pairs(given.data, size.vocab_size) if given.data else drawn_pairs(size.vocab_size)
    batches = make_batches(pairs, size.batch_tokens, size.steps_per_turn * (N_WARMING + n_turns))
    failed: dict[str, str] = {}
    about: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="manyheads-speed-") as folder:
        save_batches(Path(folder) / "batches.npz", batches)
        order = {"size": asdict(size), "batches": str(Path(folder) / "batches.npz"), "core": given.core}
        workers = start(given.peers, sources, given, Path(folder), failed)
        for name in list(workers):
            ask_or_fail(workers, name, order, failed, lambda answer, name=name: about.update({name: answer}))
        turns = [
            [number % len(batches) for number in range(first, first + size.steps_per_turn)]
            for first in range(0, size.steps_per_turn * (N_WARMING + n_turns), size.steps_per_turn)
        ]
        answers = ask_in_turns(workers, [{"batches": turn} for turn in turns], failed)
        for worker in workers.values():
            worker.end()
    sgemm = [answer["losses"][-1] for answer in answers.pop("sgemm", [])]
    return {
        **stamp(),
        "text": "real" if given.data else "drawn",
        "size": asdict(size),
        "n_warming": N_WARMING,
        "batches": describe(batches, size),
        "turns": turns,
        "workers": {name: {**about[name], "turns": turns} for name, turns in answers.items()},
        "sgemm_gflop_per_cpu_second": sgemm,
        "failed": failed,
    }


def _named_source(text: str) -> tuple[str, Path]:
    name, _, source = text.partition("=")
    if not name or name in (OURS, "sgemm", *WORKERS) or not (Path(source) / "manyheads").is_dir():
        raise argparse.ArgumentTypeError(
            f"{text} must be NAME=FOLDER, where FOLDER contains another version of manyheads"
        )
    return name, Path(source).resolve()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--peers", nargs="*", choices=WORKERS, default=list(WORKERS))
    parser.add_argument("--source", action="append", type=_named_source, default=[], metavar="NAME=FOLDER")
    parser.add_argument("--turns", type=int, default=0, help="number of turns; default: that of the size")
    parser.add_argument("--inner-dropout", type=float, default=0.0)
    parser.add_argument("--bfloat16", action="store_true", help='also with train.precision = "bfloat16"')
    parser.add_argument(
        "--data",
        nargs=2,
        type=Path,
        metavar=("SOURCE", "TARGET"),
        help="parallel text to use instead of synthetic text",
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder for the environments of the peers")
    parser.add_argument("--core", type=int, help="core to run on; default: the last one available")
    parser.add_argument("--keep-nothing", action="store_true", help="print the table, but write no files")
    given = parser.parse_args()
    if given.core is None and hasattr(os, "sched_getaffinity"):
        given.core = max(os.sched_getaffinity(0))
    records = {}
    for name in given.sizes:
        size = replace(SIZES[name], inner_dropout=given.inner_dropout)
        key = f"{name}, dropout everywhere" if given.inner_dropout else name
        records[key] = measure(size, given, dict(given.source))
        if not given.keep_nothing:
            store(RESULT, key, records[key])
    print(draw.training_table(records))
    if not given.keep_nothing:
        draw.main()


if __name__ == "__main__":
    main()
