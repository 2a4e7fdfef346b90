"""What `manyheads init` makes of files: the splits, the task, the columns, the rows."""

import shutil
from pathlib import Path
from random import Random

from manyheads.proposals.recognition import recognize
from manyheads.proposals.survey import survey
from manyheads.tasks import TASKS
from manyheads.tasks.task_init import Request

from fuzz.mutations import mutated

_WORDS = ("a", "good", "bad", "film", "床前明月光", "né", "x", "1", "B-PER", "O", "…")
_NAMES = (
    "train.en", "train.de", "train.tsv", "data.csv", "rows.jsonl", "train.conll", "seq.in", "seq.out", "label", "a.txt",
    "b.txt", "valid.tsv", "test.txt", "README.md", "x", ".hidden", "train.en.gz", "dev.jsonl",
)  # fmt: skip


def _content(rng: Random, name: str) -> bytes:
    n_rows, k = rng.choice((0, 1, 30, 300)), rng.randrange(1, 5)
    separator = {".tsv": "\t", ".csv": ","}.get(Path(name).suffix, " ")
    rows = [separator.join(rng.choices(_WORDS, k=k)) for _ in range(n_rows)]
    if name.endswith("jsonl"):
        labels = ("1", "true", "null", "[]", "[1, 2]", "{}")
        rows = [f'{{"text": "{row}", "label": {rng.choice(labels)}}}' for row in rows]
    elif rng.random() < 0.5 and separator != " ":
        rows.insert(0, separator.join(("text", "label", "tags", "id")[:k]))
    elif rng.random() < 0.3:
        rows = [f"{rng.choice(_WORDS)} {rng.choice(('O', 'B-PER', 'I-PER'))}" for _ in rows]
        rows = [row + rng.choice(("", "", "\n")) for row in rows]  # blank lines between sentences
    return "".join(row + "\n" for row in rows).encode()


def init(rng: Random) -> None:
    folder = Path("data")
    folder.mkdir()
    try:
        names = rng.sample(_NAMES, k=rng.randrange(1, 4))
        for name in names:
            (folder / name).write_bytes(mutated(rng, _content(rng, name), 2))
        if rng.random() < 0.1:
            (folder / "sub").mkdir()
        given = [folder] if rng.random() < 0.3 else [folder / name for name in names]
        task = rng.choice(("", "", "", *(part.init.cli_name for part in TASKS.values())))
        columns = {rng.choice(("text", "label", "source", "tags")): rng.choice(("text", "1", "9", "x"))}
        found = recognize(given, request=Request(task=task, columns=columns if rng.random() < 0.2 else {}))
        survey(found.settings, found.task, found.clean, named_languages=found.languages)
    finally:
        shutil.rmtree(folder)


TARGETS = {"init": init}
