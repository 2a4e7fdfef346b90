"""Training speed: tokens per second of manyheads and of its peers, at the same sizes, on the same batches.

    make bench-training                                       all peers, tiny and base, into benchmarks/speed/
    make bench-training ARGS="--sizes tiny --peers torch transformers --turns 5"
    make bench-training ARGS="--source before=/other/tree/src"     another manyheads as one more peer

One step is forward, label-smoothed loss (0.1), backward, clip and Adam, on padded ids that are there already. Every
worker is a process of its own with one thread, on one core; they take turns of a few steps, all on the same batches,
and what counts is CPU time. A ratio is the median over turns.

How much of the machine training uses is FLOP of the model / CPU seconds / what SGEMM reaches in the same run. FLOP of
the model are those of its matrix products on real tokens, padding not counted, the forward pass's × 3; the formula
stands in src/manyheads/bench/flop.py.
Dropout stands where the paper has it, on what enters a stack and on what a sub-layer adds. What peers drop besides
(attention weights, inside the feed-forward) is off for all, or with --inner-dropout on for all.
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
N_WARMING = 1  # turns that are not counted


@dataclass(frozen=True)
class Size:
    """A model and how much of the corpus it sees at once."""

    layers: int  # of the encoder, and of the decoder
    width: int
    feed_forward_width: int
    n_heads: int
    vocab_size: int
    batch_tokens: int  # padded, on either side
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
# By whom, in whose environment ("": ours), with which worker.
WORKERS = {
    "torch": ("", "training_torch.py"),
    "transformers": ("transformers", "training_transformers.py"),
    "joeynmt": ("joeynmt", "training_joeynmt.py"),
    "opennmt-py": ("opennmt-py", "training_opennmt.py"),
    "eole": ("eole", "training_eole.py"),
}


def count_flop(size: Size, batch: PairBatch) -> int:
    """Of a step on this batch; the formula is `manyheads.bench.count_flop`'s."""
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
    """The workers, each with its environment; a peer without one is reported in `failed`."""
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
    """One size, all workers."""
    n_turns = given.turns or size.n_turns
    pairs = real_pairs(given.data, size.vocab_size) if given.data else drawn_pairs(size.vocab_size)
    batches = make_batches(pairs, size.batch_tokens, size.steps_per_turn * (N_WARMING + n_turns))
    failed: dict[str, str] = {}
    about: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="manyheads-speed-") as place:
        save_batches(Path(place) / "batches.npz", batches)
        order = {"size": asdict(size), "batches": str(Path(place) / "batches.npz"), "core": given.core}
        workers = start(given.peers, sources, given, Path(place), failed)
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
        raise argparse.ArgumentTypeError(f"{text} should be NAME=FOLDER, the folder that holds another manyheads")
    return name, Path(source).resolve()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--peers", nargs="*", choices=WORKERS, default=list(WORKERS))
    parser.add_argument("--source", action="append", type=_named_source, default=[], metavar="NAME=FOLDER")
    parser.add_argument("--turns", type=int, default=0, help="number of turns; 0: that of the size")
    parser.add_argument("--inner-dropout", type=float, default=0.0)
    parser.add_argument("--bfloat16", action="store_true", help='also with train.precision = "bfloat16"')
    parser.add_argument(
        "--data", nargs=2, type=Path, metavar=("SOURCE", "TARGET"), help="parallel text to take instead"
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the peers' environments are or shall be")
    parser.add_argument("--core", type=int, help="to run on; none: the last that is allowed")
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
