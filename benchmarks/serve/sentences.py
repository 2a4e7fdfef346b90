"""The texts of the benchmarks: sentences of the built-in corpus, or the lines of a file."""

from pathlib import Path

from manyheads.corpora import pairs, rows

_N_TEST = 1000  # sentences of the test split; more come from the whole grammar, with another seed than the training's


def english(count: int, seed: int = 17) -> list[str]:
    """Return distinct English sentences."""
    found = dict.fromkeys(source for source, _ in pairs("en", "zh", "test", min(count, _N_TEST), seed))
    for source, _ in pairs("en", "zh", "train", count, seed):
        if len(found) >= count:
            break
        found[source] = None
    return list(found)


def of_task(task: str, count: int, seed: int = 17) -> list[str]:
    """Return texts for a bundle of a task."""
    if task == "seq2seq":
        return english(count, seed)
    if task == "classify":
        return [str(row[0]) for row in rows("classify", "en", "test", count, seed)]
    if task == "tag":
        return [str(row[0]) for row in rows("tag", "en", "test", count, seed)]
    if task == "language":
        return [" ".join(str(row[0]).split()[:8]) for row in rows("generate", "en", "test", count, seed)]
    raise ValueError(f"there are no texts for the task {task!r}.")


def from_file(path: Path, count: int) -> list[str]:
    """Return the first lines of a file that are not blank."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return lines[:count]
