"""What whoever runs `init` and `train` gets: every data set with nothing touched, beside scikit-learn, a CRF and spaCy.

    make defaults                                   all sets (hours)
    make defaults ARGS="banking77 subj"             these sets
    make defaults ARGS="--peers-only"               scikit-learn, CRF and spaCy only; --ours-only: without them
    make defaults ARGS="--budget 25m tatoeba-en-fr" `init --budget 25m`, which the table says
    make defaults ARGS="--limit 12 subj"            stop a peer or our training after 12 minutes, which the table says
    make defaults ARGS="--ours-only --resume subj"  go on with our stopped training, or only evaluate its model again
    python benchmarks/defaults.py --table           write defaults.md again from defaults.json

Each of our models is made by three commands, `manyheads init`, `train` and `evaluate`, one thread each. The peers
(defaults_peers.py) run in an environment of their own, in .peers/, on the same rows: training rows whose text also
stands in the valid or test set are left out for all. Results are merged into defaults.json by set, so that a long
benchmark can be made in parts. Predictions stay in runs/defaults/, for the paired interval of the difference.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RUNS = ROOT / "runs" / "defaults"
RESULTS, TABLE = HERE / "defaults.json", HERE / "defaults.md"
sys.path.insert(0, str(HERE / "speed"))

from frame import stamp  # noqa: E402
from peers import prepare  # noqa: E402

from manyheads import load  # noqa: E402
from manyheads.data.cleaning import CleanSettings, clean  # noqa: E402
from manyheads.metrics import Tally, bleu_tally, compare_tallies, f1_tally, share_tally  # noqa: E402
from manyheads.run.corpus import Corpus  # noqa: E402
from manyheads.run.recipe import DataSettings  # noqa: E402
from manyheads.tasks import TASKS  # noqa: E402
from manyheads.text.markup.copyable_spans import copyable_spans  # noqa: E402
from manyheads.text.reading.tag_schemes import tags_to_spans  # noqa: E402

Row = tuple[str, ...]
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
_FOLDER_FILES = ("seq.in", "seq.out", "label")


@dataclass(frozen=True)
class DataSet:
    """The files of a data set, below the folder of its name, and the options of `init` that name its columns."""

    task: str  # as the library calls it
    train: tuple[str, ...]
    test: tuple[str, ...]
    valid: tuple[str, ...] = ()  # none: `init` holds rows out of training
    language: str = "en"
    columns: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""  # if it is not the name of the set
    is_optional: bool = False  # only run by name
    peers: tuple[str, ...] = ()


def _table(language: str, label: str = "label", text: str = "text", **more: Any) -> DataSet:
    columns = {"text": text, "label": label}
    return DataSet("classify", ("train.csv",), ("test.csv",), language=language, columns=columns, **more)


def _tagged(train: str, test: str, valid: str = "", **more: Any) -> DataSet:
    return DataSet("tag", (train,), (test,), (valid,) if valid else (), **more)


_LABELS, _LABELS_2 = ("scikit-learn",), ("scikit-learn", "spaCy textcat")
_TAGS = ("CRF", "spaCy NER")
_SPLIT_FOLDERS = {split: tuple(f"{split}/{name}" for name in _FOLDER_FILES) for split in ("train", "test", "valid")}
SETS = {
    "banking77": _table("en", "category", peers=_LABELS_2),
    "subj": _table("en", peers=_LABELS_2),
    "mpqa": _table("en", peers=_LABELS_2),
    "waimai10k": _table("zh", text="review", peers=_LABELS_2),
    "shopping10": _table("zh", "category", "review", peers=_LABELS),
    "chnsenticorp": DataSet("classify", ("train.tsv",), ("dev.tsv",), language="zh", peers=_LABELS),
    "sst2": DataSet(
        "classify", ("train.tsv",), ("dev.tsv",), columns={"text": "sentence", "label": "label"}, peers=_LABELS
    ),
    "snips": DataSet("tag", **_SPLIT_FOLDERS, peers=(*_LABELS, *_TAGS)),
    "atis": DataSet("tag", **_SPLIT_FOLDERS, peers=(*_LABELS, *_TAGS)),
    "conll2003": _tagged("eng.train", "eng.testb", "eng.testa", peers=_TAGS),
    "resume-ner": _tagged("train.char.bmes", "dev.char.bmes", language="zh", peers=_TAGS),
    "msra-ner": _tagged("train.conll", "test.conll", "dev.conll", language="zh", peers=_TAGS),
    "tatoeba-en-fr": DataSet("seq2seq", ("train.tsv",), ("test.tsv",), ("valid.tsv",)),
    "python-docs-en-zh": DataSet("seq2seq", ("train.en", "train.zh"), ("test.en", "test.zh"), ("valid.en", "valid.zh")),
    "multi30k-raw": DataSet(
        "seq2seq",
        ("train.en", "train.de"),
        ("test_2016_flickr.en", "test_2016_flickr.de"),
        ("val.en", "val.de"),
        folder="multi30k-en-de/raw",
        is_optional=True,
    ),
}
_INTENTS, _SPANS, _MARKUP = "intent accuracy", "F1", "% of markup kept"
_MEASURES = {"classify": ("accuracy",), "tag": (_SPANS, _INTENTS), "seq2seq": ("BLEU",)}


class TimeLimitError(Exception):
    """A command had no time left."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds  # of the processor


class Benchmark:
    """One data set: its rows, and the results of every system on its test set."""

    def __init__(self, name: str, data: Path) -> None:
        self.name, self.set = name, SETS[name]
        self.source = data / (self.set.folder or name)
        self.folder = RUNS / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.has_intents = self.set.task == "tag" and len(self.set.train) > 1
        settings = {"intents": True} if self.has_intents else {}
        columns = {f"{field}_column": column for field, column in self.set.columns.items()}
        files = {split: self.files(split) for split in ("train", "valid", "test")}
        self.corpus = Corpus(DataSettings(**files, **columns), 1, task=TASKS[self.set.task].settings_type(**settings))

    def files(self, split: str) -> tuple[str, ...]:
        return tuple(str(self.source / name) for name in getattr(self.set, split))

    @property
    def measures(self) -> tuple[str, ...]:
        return tuple(one for one in _MEASURES[self.set.task] if one != _INTENTS or self.has_intents)

    def rows(self, split: str) -> list[Row]:
        """All rows of a split; a faulty tag is read as the CoNLL evaluation script reads it."""
        task, files = self.corpus.task_class, self.files(split)
        return list(task.read(files, self.corpus.columns(files), self.corpus.task, lambda error: None)) if files else []

    def training_rows(self) -> list[Row]:
        """The training rows for the peers: usable ones whose text does not stand in the valid or test set."""
        held_out = [*self.rows("valid"), *self.rows("test")]
        keep_copies = CleanSettings(drop_duplicates=False)
        return list(clean(self.rows("train"), keep_copies, Counter(), held_out, self.corpus.fields))

    def tally(self, measure: str, predicted: Sequence[Any]) -> Tally:
        """Predicted labels or tag sequences, or the spans themselves, against the test rows."""
        rows = self.rows("test")
        if measure == _SPANS:
            return f1_tally(measure, [_spans(row[1].split(" ")) for row in rows], [_spans(tags) for tags in predicted])
        pairs = zip(predicted, rows, strict=True)
        return share_tally(measure, [label == row[-1] for label, row in pairs], [1] * len(rows))

    def run_peer(self, peer: str, limit: float | None = None) -> dict[str, Any]:
        """Train and score one peer; it has at most this many minutes."""
        measure = _SPANS if peer in _TAGS else self.measures[-1]
        column = 1 if measure == _SPANS else -1
        both = {split: [(row[0], row[column]) for row in self.rows(split)] for split in ("valid", "test")}
        rows = {"train": [(row[0], row[column]) for row in self.training_rows()], **both}
        source, target = self.folder / "rows.json", self.folder / f"{_file_name(peer)}.predictions.json"
        source.write_text(json.dumps({"language": self.set.language, **rows}), encoding="utf-8")
        python = prepare("baselines")
        command = [str(python), "-W", "ignore", str(HERE / "defaults_peers.py"), peer, str(source), str(target)]
        try:
            seconds = _run(command, self.folder / f"{_file_name(peer)}.log", minutes=limit)
        except TimeLimitError:
            return {measure: {"stopped_after_minutes": limit} | stamp()}
        finally:
            source.unlink()
        tally = self.tally(measure, json.loads(target.read_text(encoding="utf-8")))
        self.keep(peer, tally)
        return {measure: _result(tally, seconds)}

    def run_ours(self, budget: str = "", limit: float | None = None, *, resume: bool = False) -> dict[str, Any]:
        """`init`, `train` and `evaluate`, with nothing touched but the budget, if there is one.

        The training has at most this many minutes. With `resume`, it goes on where the last one ended.
        """
        recipe, run, log = self.folder / "recipe.toml", self.folder / "run", self.folder / "ours.log"
        options = [f"--{split}={file}" for split in ("valid", "test") for file in self.files(split)]
        options += [f"--{field}-column={column}" for field, column in self.set.columns.items()]
        options += [f"--budget={budget}"] if budget else []
        command = [sys.executable, "-m", "manyheads"]
        spent = self.folder / "spent.json"  # of all sessions of this run
        if resume:
            budget, elapsed, seconds = json.loads(spent.read_text(encoding="utf-8"))
        else:
            shutil.rmtree(run, ignore_errors=True)
            init = [*command, "init", *self.files("train"), *options, "-o", str(recipe), "--overwrite"]
            elapsed, seconds = 0.0, {"init": _run(init, log), "train": 0.0}
        started, is_stopped = time.monotonic(), False
        try:
            seconds["train"] += _run([*command, "train", str(recipe), "-o", str(run), "--plain"], log, minutes=limit)
        except TimeLimitError as stopped:
            seconds["train"], is_stopped = seconds["train"] + stopped.seconds, True
        elapsed += (time.monotonic() - started) / 60
        spent.write_text(json.dumps([budget, elapsed, seconds]), encoding="utf-8")
        if is_stopped:
            result = {"stopped_after_minutes": round(elapsed), "cpu_seconds": round(sum(seconds.values()), 2)}
            result |= {"budget": budget} if budget else {}
            return {measure: result | stamp() for measure in self.measures}
        card = self.folder / "evaluate.json"
        seconds["evaluate"] = _run([*command, "evaluate", str(run / "bundle"), "--json"], log, card)
        total = sum(seconds.values())
        scores = json.loads(card.read_text(encoding="utf-8"))["test"]["scores"]
        results = {}
        for tally in self.our_tallies(run / "bundle"):
            self.keep("ours", tally)
            results[tally.name] = _result(tally, total) | {"commands": {k: round(v, 1) for k, v in seconds.items()}}
            results[tally.name] |= {"budget": budget} if budget else {}
        for one in scores:  # the paired comparison is of the very answers that `evaluate` scored
            if one["name"] in results and abs(one["value"] - results[one["name"]]["score"]) > 0.05:
                raise SystemExit(f"{self.name}: {one['name']} is {one['value']:.2f} by evaluate, not {results}.")
        results |= {
            one["name"]: {"score": round(one["value"], 2), "low": round(one["low"], 2), "high": round(one["high"], 2)}
            for one in scores
            if one["name"] == "chrF"
        }
        return results

    def our_tallies(self, folder: Path) -> Iterable[Tally]:
        bundle, rows = load(folder), self.rows("test")
        if self.set.task == "seq2seq":
            answers = bundle.engine_task.answer(rows, bundle.decode)
            yield bleu_tally(answers.texts, answers.references, bundle.engine_task.settings.target_language)
            yield from _markup_tallies(rows, answers.texts)
            return
        yield bundle.engine_task.tally(rows, bundle.decode)
        if self.has_intents:
            predictions: Sequence[Any] = bundle.predictions([row[0] for row in rows])
            yield self.tally(_INTENTS, [prediction.label for prediction in predictions])

    def keep(self, system: str, tally: Tally) -> None:
        """Store the counts of every text, so that systems can be compared in pairs."""
        path = self.folder / f"{_file_name(system)}.{_file_name(tally.name)}.counts.json"
        path.write_text(json.dumps(tally.counts.astype(int).tolist()), encoding="utf-8")

    def kept(self, system: str, measure: str) -> Tally | None:
        import numpy as np

        path = self.folder / f"{_file_name(system)}.{_file_name(measure)}.counts.json"
        if not path.exists():
            return None
        counts = np.array(json.loads(path.read_text(encoding="utf-8")), np.float64)
        empty = f1_tally(measure, [], []) if measure == _SPANS else share_tally(measure, [], [])
        return Tally(measure, counts, empty.statistic, empty.extremes)

    def compare(self, result: dict[str, Any]) -> None:
        """Add the paired interval of ours minus the better peer to our results."""
        for measure, ours in result.get("ours", {}).items():
            peers = {
                peer: measures[measure]["score"]
                for peer, measures in result.get("peers", {}).items()
                if "score" in measures.get(measure, {})
            }
            if not peers or "score" not in ours:
                continue
            best = max(peers, key=peers.__getitem__)
            tally, other = self.kept("ours", measure), self.kept(best, measure)
            if tally is not None and other is not None and len(tally.counts) == len(other.counts):
                change = compare_tallies(tally, other)
                values = (change.difference, change.low, change.high)
                ours["against"] = {"peer": best, "difference": [round(value, 2) for value in values]}


def _markup_tallies(rows: Sequence[Row], translations: Sequence[str]) -> Iterable[Tally]:
    """The share of code, markup and URLs that the translation repeats: of the source, and of source and reference."""
    of_source = [[source[start:end] for start, end in copyable_spans(source)] for source, *_ in rows]
    of_both = [[span for span in spans if span in row[1]] for spans, row in zip(of_source, rows, strict=True)]
    for name, wanted in ((_MARKUP, of_source), (f"{_MARKUP} (also by the reference)", of_both)):
        if any(wanted):
            pairs = zip(wanted, translations, strict=True)
            kept = [sum(span in translation for span in spans) for spans, translation in pairs]
            yield share_tally(name, kept, list(map(len, wanted)))


def _spans(tags: Sequence[str]) -> set[Any]:
    return set(tags_to_spans(tags, "IOB2", on_bad=lambda error: None))


def _result(tally: Tally, seconds: float) -> dict[str, Any]:
    score = tally.score()
    values = {"score": score.value, "low": score.low, "high": score.high, "cpu_seconds": seconds}
    return {name: round(value, 2) for name, value in values.items()} | stamp()


def _file_name(words: str) -> str:
    return words.lower().replace(" ", "-")


def _run(command: Sequence[str], log: Path, output: Path | None = None, minutes: float | None = None) -> float:
    """Run a command with one thread, for at most so many minutes; return its processor seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)

    def spent() -> float:
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    try:
        with log.open("a", encoding="utf-8") as stream:
            done = subprocess.run(
                command,
                stdout=subprocess.PIPE if output else stream,
                stderr=stream,
                text=True,
                timeout=None if minutes is None else 60 * minutes,
                cwd=ROOT,
                env=os.environ | _ONE_THREAD | {"PYTHONPATH": str(ROOT / "src")},
            )
    except subprocess.TimeoutExpired:
        raise TimeLimitError(spent()) from None
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: ended with {done.returncode}. See {log}.")
    if output:
        output.write_text(done.stdout, encoding="utf-8")
    return spent()


def merge(name: str, change: Callable[[dict[str, Any]], None], path: Path = RESULTS) -> None:
    """Change the results of one set in the file; other runs may have changed those of others."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    change(known.setdefault(name, {}))
    ordered = {one: known[one] for one in SETS if one in known}
    path.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_table() -> None:
    """Write defaults.md from the results."""
    known = json.loads(RESULTS.read_text(encoding="utf-8"))
    lines = [
        "# Defaults",
        "",
        "`manyheads init`, `train` and `evaluate` with nothing touched, beside the peers on the same rows. Written by",
        "`make defaults` (benchmarks/defaults.py); do not edit. One thread each; minutes are processor minutes of all",
        "three commands, or of a peer's training and prediction. Training rows whose text also stands in the valid or",
        "test set are left out for all. 95 % bootstrap intervals in brackets; the difference to the better peer is",
        "paired. What was stopped has elapsed minutes, on a busy machine. A row with --budget was not planned by",
        "`init` alone.",
        "",
        "| set, test rows | measure | manyheads | min | scikit-learn | min | CRF | min | spaCy | min | difference |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, result in known.items():
        measures = dict.fromkeys(
            measure for measures in (result.get("ours", {}), *result.get("peers", {}).values()) for measure in measures
        )
        for measure in measures:
            ours, peers = result.get("ours", {}).get(measure, {}), result.get("peers", {})
            columns = [ours, *(_peer(peers, prefix).get(measure, {}) for prefix in ("scikit-learn", "CRF", "spaCy"))]
            cells = [cell for column in columns for cell in (_score(column), _minutes(column))]
            budget = f" (--budget {ours['budget']})" if "budget" in ours else ""
            cells = [measure + budget, *cells, _difference(ours)]
            lines.append(f"| {name}, {result['n_test']:,} | {' | '.join(cells)} |")
    stamps = sorted(
        {
            f"{one['date'][:10]}, {one['machine']}"
            for result in known.values()
            for measures in (result.get("ours", {}), *result.get("peers", {}).values())
            for one in measures.values()
            if "date" in one
        }
    )
    lines += ["", *(f"Measured {one}." for one in stamps)]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _peer(peers: Mapping[str, Any], prefix: str) -> Mapping[str, Any]:
    """The results of the peers whose name starts like this, by measure."""
    found: dict[str, Any] = {}
    for peer, measures in peers.items():
        if peer.startswith(prefix):
            found |= measures
    return found


def _score(result: Mapping[str, Any]) -> str:
    if "stopped_after_minutes" in result:
        return f"stopped after {result['stopped_after_minutes']:g} min"
    return f"{result['score']:.1f} [{result['low']:.1f}, {result['high']:.1f}]" if result else "–"


def _minutes(result: Mapping[str, Any]) -> str:
    return f"{result['cpu_seconds'] / 60:.1f}" if "cpu_seconds" in result else "–"


def _difference(ours: Mapping[str, Any]) -> str:
    if "against" not in ours:
        return "–"
    value, low, high = ours["against"]["difference"]
    return f"{value:+.1f} [{low:+.1f}, {high:+.1f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="SET", help=f"{', '.join(SETS)}; default: all but multi30k-raw")
    parser.add_argument(
        "--data", type=Path, help="the folder of the data sets; default: data here or beside this folder"
    )
    parser.add_argument("--peers-only", action="store_true")
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--peer", action="append", default=[], help="only this peer; may be repeated")
    parser.add_argument("--limit", type=float, metavar="MINUTES", help="stop a peer or our training after this time")
    parser.add_argument("--budget", default="", metavar="TIME", help="the budget for `init`; default: none")
    parser.add_argument("--resume", action="store_true", help="go on with our last training, then evaluate")
    parser.add_argument("--table", action="store_true", help="only write defaults.md again")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in SETS]
    if unknown:
        parser.error(f"unknown set: {', '.join(unknown)}. Known: {', '.join(SETS)}.")
    if given.table:
        return write_table()
    data = given.data or next((path for path in _data_folders() if path.is_dir()), None)
    if data is None:
        parser.error("there is no folder of data sets. Name it with --data.")
    for name in given.names or [name for name in SETS if not SETS[name].is_optional]:
        run_set(Benchmark(name, data), given)
    return None


def _data_folders() -> list[Path]:
    return [ROOT / "data", ROOT.parent / "data", *ROOT.parent.glob("*/data"), *ROOT.parents[1].glob("*/data")]


def run_set(one: Benchmark, given: argparse.Namespace) -> None:
    n_test = len(one.rows("test"))
    merge(one.name, lambda result: result.update(n_test=n_test))
    for peer in () if given.ours_only else one.set.peers:
        if given.peer and peer not in given.peer:
            continue
        print(f"{time.strftime('%H:%M')} {one.name}: {peer}", file=sys.stderr, flush=True)
        found = one.run_peer(peer, given.limit)
        print(json.dumps(found), flush=True)
        merge(one.name, lambda result, peer=peer, found=found: result.setdefault("peers", {}).update({peer: found}))
    if not given.peers_only:
        print(f"{time.strftime('%H:%M')} {one.name}: manyheads", file=sys.stderr, flush=True)
        ours = one.run_ours(given.budget, given.limit, resume=given.resume)
        print(json.dumps(ours), flush=True)
        merge(one.name, lambda result: result.update(ours=ours))
    merge(one.name, one.compare)
    write_table()


if __name__ == "__main__":
    main()
