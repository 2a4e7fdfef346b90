"""Decoding speed: sentences per second of manyheads' engines, of CTranslate2 and of Hugging Face, on the same weights.

    make bench-decoding                                   needs runs/multi30k/bundle (make multi30k) and its test set
    make bench-decoding ARGS="--cases base --turns 2"     random weights: needs nothing

Every worker is a process with one thread on one core. Workers alternate, and CPU time is compared. A ratio is the
median over turns. Three things are measured, with greedy search and with a beam of 5:
    file    from a text file to a text file, tokenization included
    ids     from ids to ids: the engine only
    alone   one call per sentence: the median over sentences
CTranslate2 runs on exported weights, with the batch size (in tokens) that is fastest on this machine, found before the
first turn, with and without scores. Hugging Face gets 32 sentences of similar length per batch. Slow contenders
(Hugging Face and the torch engine) get every eighth of those batches, different ones in each turn.
The model with random weights generates 20 ids for each source of 20 ids, so that all do the same number of steps.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import draw
import numpy as np
import torch
from draw_decoding import decoding_table
from frame import HERE, ROOT, Worker, ask_or_fail, stamp, store
from peers import FOLDER, PeerError, prepare
from safetensors.torch import save_file

from manyheads.bundle import load
from manyheads.decode import SpecialTokens
from manyheads.interop import export_ctranslate2
from manyheads.metrics import bleu_tally
from manyheads.model import ModelSettings, Transformer
from manyheads.model.weights import weights_of
from manyheads.text.tokens.tokenizer import BOS, EOS, PAD, UNK

RESULT = HERE / "decoding.json"
SPECIAL_TOKENS = SpecialTokens(bos=BOS, eos=EOS, pad=PAD, forbidden=(PAD, UNK, BOS))
BATCH = 32  # sentences per batch of Hugging Face
SHARE = 8  # slow contenders get one of this many batches
FIXED = 20  # ids of a source and of an output with random weights
BASE = {"vocab_size": 16_000, "max_length": 256, "dropout": 0.0}


@dataclass(frozen=True)
class Contender:
    """A system to measure: its worker script and options."""

    script: str
    home: str = ""  # the environment of the peer; "": that of manyheads
    engine: str = ""
    precision: str = "float32"
    is_slow: bool = False
    beams: tuple[int, ...] = (1, 5)


CONTENDERS = {
    "native": Contender("decoding_manyheads.py", engine="native"),
    "native int8": Contender("decoding_manyheads.py", engine="native", precision="int8"),
    "torch": Contender("decoding_manyheads.py", engine="torch", is_slow=True),
    "CTranslate2": Contender("decoding_ctranslate2.py", "ctranslate2"),
    "CTranslate2 int8": Contender("decoding_ctranslate2.py", "ctranslate2", precision="int8_float32"),
    "Hugging Face": Contender("decoding_transformers.py", "transformers", is_slow=True),
}


@dataclass(frozen=True)
class Task:
    """One measurement."""

    do: str  # file, ids or alone
    beam: int
    n_sentences: int = 0  # 0: all
    not_for: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        size = f"{self.n_sentences} " if self.n_sentences and self.do == "ids" else ""
        return f"{size}{self.do}, {'greedy' if self.beam == 1 else f'beam {self.beam}'}"


@dataclass(frozen=True)
class Case:
    """A model and its measurements."""

    tasks: tuple[Task, ...]
    contenders: tuple[str, ...]
    n_turns: int
    n_alone: int  # sentences over all turns
    n_tuning: int


CASES = {
    "multi30k": Case(
        tuple(Task(do, beam) for do in ("file", "ids", "alone") for beam in (1, 5)),
        tuple(CONTENDERS),
        n_turns=3,
        n_alone=99,
        n_tuning=240,
    ),
    "base": Case(
        (
            Task("ids", 1, 32),
            Task("ids", 1, 96, not_for=("Hugging Face",)),
            Task("ids", 5, 32, not_for=("Hugging Face",)),
            Task("alone", 1),
            Task("alone", 5, not_for=("Hugging Face",)),
        ),
        ("native", "native int8", "CTranslate2", "CTranslate2 int8", "Hugging Face"),
        n_turns=3,
        n_alone=12,
        n_tuning=64,
    ),
}


@dataclass(frozen=True)
class BenchmarkData:
    """The data of a case, in files that every worker can read."""

    order: Mapping[str, Any]  # for the workers
    sources: Sequence[Sequence[int]]  # with EOS, sorted by length
    texts: Sequence[str] = ()  # in the same order
    references: Sequence[str] = ()


def make_multi30k(given: argparse.Namespace, folder: Path) -> BenchmarkData:
    """Return the data of the trained bundle: its weights and its test set."""
    bundle = load(given.bundle)
    model, tokenizer = bundle.task.model, bundle.task.tokenizer
    pairs = list(zip(*(file.read_text(encoding="utf-8").splitlines() for file in given.data), strict=True))
    rows = sorted(zip(tokenizer.encode_batch([source for source, _ in pairs]), pairs, strict=True), key=_length)
    tokens = [tokenizer._processor.id_to_piece(number) for number in range(tokenizer.vocab_size)]
    indices = torch.arange(model.settings.max_length)[None]
    save_file({"positions": model.source_embedding.positions(indices)[0]}, folder / "positions.safetensors")
    return BenchmarkData(
        {
            "bundle": str(given.bundle),
            "weights": str(given.bundle / "weights.safetensors"),
            "positions": str(folder / "positions.safetensors"),
            "tokenizer": str(given.bundle / "tokenizer.model"),
            "settings": asdict(model.settings),
            "exported": str(export_with_tokens(model, folder / "exported", tokens)),
            "tokens": tokens,
            "fixed_length": 0,
        },
        [[*ids, EOS] for ids, _ in rows],
        [source for _, (source, _) in rows],
        [reference for _, (_, reference) in rows],
    )


def make_base(given: argparse.Namespace, folder: Path) -> BenchmarkData:
    """Return the data of a model of the base size of the paper with random weights."""
    torch.manual_seed(1)
    model = Transformer(ModelSettings(**BASE)).eval()
    save_file({name: value.contiguous() for name, value in weights_of(model).items()}, folder / "weights.safetensors")
    tokens = [f"token {number}" for number in range(model.settings.vocab_size)]
    words = np.random.default_rng(1).integers(4, model.settings.vocab_size, size=(96, FIXED - 1))
    return BenchmarkData(
        {
            "bundle": "",
            "weights": str(folder / "weights.safetensors"),
            "positions": "",
            "tokenizer": "",
            "settings": asdict(model.settings),
            "exported": str(export_with_tokens(model, folder / "exported", tokens)),
            "tokens": tokens,
            "fixed_length": FIXED,
        },
        [[*row, EOS] for row in words.tolist()],
    )


def _length(row: tuple[Sequence[int], tuple[str, str]]) -> int:
    return len(row[0])


def export_with_tokens(model: Transformer, folder: Path, tokens: Sequence[str]) -> Path:
    """Export a model to CTranslate2 with the tokens of SentencePiece, as a user would."""
    folder.mkdir()
    export_ctranslate2(model, SPECIAL_TOKENS, folder, tokens)
    return folder


def spread(count: int, n_chosen: int) -> list[int]:
    """Return `n_chosen` evenly spaced numbers below `count`."""
    return [int(row) for row in np.linspace(0, count - 1, min(count, n_chosen))]


def choose_rows(
    data: BenchmarkData, case: Case, task: Task, contender: Contender, turn: int, n_turns: int
) -> list[int]:
    """Return the sentences that a contender gets in a turn."""
    count = len(data.sources)
    if task.do == "alone":  # the sentences of one turn have all lengths
        return spread(count, case.n_alone)[turn % n_turns :: n_turns]
    if contender.is_slow and count > SHARE * BATCH:
        return [row for first in range(turn % SHARE * BATCH, count, SHARE * BATCH) for row in
                range(first, min(count, first + BATCH))]  # fmt: skip
    return list(range(task.n_sentences or count))


def start(case: Case, given: argparse.Namespace, logs: Path, failed: dict[str, str]) -> dict[str, Worker]:
    """Start the workers, each in its environment; peers that cannot be installed are added to `failed`."""
    workers = {}
    for name in case.contenders:
        contender = CONTENDERS[name]
        try:
            python = prepare(contender.home, given.folder.resolve()) if contender.home else sys.executable
        except PeerError as error:
            failed[name] = str(error)
            print(f"{name}: {error}", file=sys.stderr)
            continue
        workers[name] = Worker(python, contender.script, logs / name, {"MANYHEADS_SRC": str(ROOT / "src")})
    return workers


class Measurement:
    """Runs the turns of one case and collects the answers."""

    def __init__(self, case: Case, data: BenchmarkData, folder: Path, n_turns: int) -> None:
        self.case, self.data, self.folder, self.n_turns = case, data, folder, n_turns
        self.turns: dict[str, dict[str, list[dict[str, Any]]]] = {}  # by task and contender
        self.written: dict[str, dict[str, dict[int, Any]]] = {}  # by task, contender and row: the output

    def message(self, task: Task, name: str, rows: Sequence[int]) -> dict[str, Any]:
        if task.do != "file":
            return {"do": task.do, "beam": task.beam, "sources": [self.data.sources[row] for row in rows]}
        source, target = self.folder / "source.txt", self.folder / "target.txt"
        source.write_text("".join(f"{self.data.texts[row]}\n" for row in rows), encoding="utf-8")
        return {"do": "file", "beam": task.beam, "source": str(source), "target": str(target)}

    def take(self, task: Task, name: str, rows: Sequence[int], answer: dict[str, Any]) -> None:
        written = answer.pop("written", None)
        if written is None:
            written = (self.folder / "target.txt").read_text(encoding="utf-8").split("\n")[:-1]
        assert len(written) == len(rows), f"{name}: {len(rows)} sentences in, {len(written)} out"
        self.written.setdefault(task.name, {}).setdefault(name, {}).update(zip(rows, written, strict=True))
        self.turns.setdefault(task.name, {}).setdefault(name, []).append({"n_sentences": len(rows), **answer})

    def run(self, workers: dict[str, Worker], failed: dict[str, str]) -> None:
        for turn in range(self.n_turns):
            for task in self.case.tasks:
                names = [name for name in workers if task.beam in CONTENDERS[name].beams and name not in task.not_for]
                first = turn % max(1, len(names))
                for name in names[first:] + names[:first]:
                    rows = choose_rows(self.data, self.case, task, CONTENDERS[name], turn, self.n_turns)
                    ask_or_fail(
                        workers, name, self.message(task, name, rows), failed,
                        lambda answer, task=task, name=name, rows=rows: self.take(task, name, rows, answer),
                    )  # fmt: skip
                print(f"turn {turn + 1} of {self.n_turns}: {task.name}", file=sys.stderr, flush=True)

    def agreement(self, task: str, name: str) -> float:
        """The share of outputs that equal those of the native engine."""
        own, native = self.written[task][name], self.written[task]["native"]
        return sum(own[row] == native[row] for row in own) / len(own)

    def bleu(self, task: str, name: str) -> float | None:
        """BLEU of the outputs; None if they do not cover the whole test set."""
        texts = self.written[task][name]
        if not self.data.references or len(texts) < len(self.data.references):
            return None
        in_order = [texts[row] for row in range(len(texts))]
        return bleu_tally(in_order, list(self.data.references), "de").value


def measure(name: str, case: Case, given: argparse.Namespace) -> dict[str, Any]:
    """Measure all workers of one case."""
    failed: dict[str, str] = {}
    about: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="manyheads-speed-") as temporary:
        folder = Path(temporary)
        data = (make_multi30k if name == "multi30k" else make_base)(given, folder)
        workers = start(case, given, folder, failed)
        for who in list(workers):
            contender = CONTENDERS[who]
            model = {**data.order, "engine": contender.engine, "precision": contender.precision}
            order = {"core": given.core, "model": model}
            ask_or_fail(workers, who, order, failed, lambda answer, who=who: about.update({who: answer}))
        measurement = Measurement(case, data, folder, given.turns or case.n_turns)
        for who in list(workers):
            for beam in CONTENDERS[who].beams:
                n_tuning = case.n_tuning if beam == 1 else case.n_tuning // 2
                rows = spread(len(data.sources), n_tuning)
                message = {"do": "tune", "beam": beam, "sources": [data.sources[row] for row in rows]}
                if who in workers:
                    ask_or_fail(
                        workers, who, message, failed,
                        lambda answer, who=who, beam=beam: about[who].setdefault("tuned", {}).update(
                            {str(beam): answer["tuned"]} if answer["tuned"] else {}
                        ),
                    )  # fmt: skip
        for who in list(workers):
            warming = {"do": "ids", "beam": 1, "sources": list(data.sources[:4])}
            ask_or_fail(workers, who, warming, failed, lambda answer: None)
        measurement.run(workers, failed)
        for worker in workers.values():
            worker.end()
    record = {**stamp(), "settings": data.order["settings"], "failed": failed, "workers": about, "tasks": {}}
    for task, turns in measurement.turns.items():
        record["tasks"][task] = {
            who: {
                "turns": own,
                "same_as_native": measurement.agreement(task, who),
                "bleu": measurement.bleu(task, who) if task.startswith("file") else None,
            }
            for who, own in turns.items()
            if who in workers
        }
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--bundle", type=Path, default=ROOT / "runs" / "multi30k" / "bundle")
    parser.add_argument("--data", nargs=2, type=Path, metavar=("SOURCE", "TARGET"), help="the test set of multi30k")
    parser.add_argument("--turns", type=int, default=0, help="number of turns; default: that of the case")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder for the environments of the peers")
    parser.add_argument("--core", type=int, help="core to run on; default: the last one available")
    parser.add_argument("--keep-nothing", action="store_true", help="print the table, but write no files")
    given = parser.parse_args()
    if "multi30k" in given.cases and (not given.data or not given.bundle.is_dir()):
        parser.error("--cases multi30k needs --data SOURCE TARGET and --bundle. Train it: make multi30k")
    if given.core is None and hasattr(os, "sched_getaffinity"):
        given.core = max(os.sched_getaffinity(0))
    if given.core is not None:
        os.sched_setaffinity(0, [given.core])
    torch.set_num_threads(1)
    records = {}
    for name in given.cases:
        records[name] = measure(name, CASES[name], given)
        if not given.keep_nothing:
            store(RESULT, name, records[name])
    print(decoding_table(records))
    if not given.keep_nothing:
        draw.main()


if __name__ == "__main__":
    main()
