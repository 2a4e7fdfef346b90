"""Bundles of own data in which every file around them is marked, so that a word of one is found wherever it appears."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from manyheads.bundle import Bundle
from manyheads.model.weights import save_tensors, weights_of
from manyheads.run import Recipe
from manyheads.settings import to_table
from manyheads.storage import atomic_folder
from manyheads.tasks import Seq2Seq, Seq2SeqSettings

from lens.makers import KINDS, SHORT, task_of

# Words that no model writes, by where they are.
MARKS = {
    name: f"zq{name}7f31"
    for name in ("train", "valid", "test", "secret", "report", "folder")  # folder: in the names of folders
}
VISITOR = "zqvisitor7f31"  # in the texts of a visitor
SECRET = "secret"  # the name of a bundle whose recipe names a file that it has nothing to do with
BROKEN = "broken"  # the name of a bundle that is damaged after it was loaded
NAMES = (*KINDS, SECRET, BROKEN)
_SUFFIXES = {"seq2seq": ".tsv", "classify": ".tsv", "tag": ".conll", "language": ".txt", "masked": ".txt"}
# Python runs this when it starts, in the server as in its workers, and lists each file that it opens below a folder.
_HOOK = """
import os, sys
_root, _list = os.environ["MARKED_ROOT"], os.open(os.environ["MARKED_LIST"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def _record(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], (str, bytes, os.PathLike)):
        path = os.path.abspath(os.fsdecode(arguments[0]))
        if path.startswith(_root):
            os.write(_list, os.fsencode(path) + b"\\n")
sys.addaudithook(_record)
"""


def make_bundles(root: Path) -> dict[str, Path]:
    """Save an untrained bundle of each task, SECRET and BROKEN; return the folders by name."""
    folders = {kind: _save(root, kind, kind, _data(root / "data", kind)) for kind in KINDS}
    secret = root / "passwd"
    secret.write_text("".join(f"{MARKS['secret']} the cat {number}\n" for number in range(200)), "utf-8")
    folders[SECRET] = _save(root, SECRET, "language", {"train": [str(secret)]})
    folders[BROKEN] = _save(root, BROKEN, "classify", _data(root / "data", "classify"))
    return folders


def damage(bundle: Path) -> None:
    """Change a byte of the weights."""
    weights = bundle / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)


def recording(folder: Path, root: Path) -> dict[str, str]:
    """Return environment variables with which Python lists the files that it opens below `root`: see `opened_files`."""
    (folder / "hooks").mkdir()
    (folder / "hooks" / "sitecustomize.py").write_text(_HOOK, "utf-8")
    path = os.pathsep.join([str(folder / "hooks"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"PYTHONPATH": path, "MARKED_ROOT": str(root), "MARKED_LIST": str(folder / "opened")}


def opened_files(folder: Path) -> set[Path]:
    """Return the files that were opened."""
    return {Path(line) for line in (folder / "opened").read_text("utf-8").splitlines()}


def _data(folder: Path, kind: str) -> dict[str, Sequence[str]]:
    """Write a training, a validation and a test file."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, Sequence[str]] = {}
    for split in ("train", "valid", "test"):
        path = folder / f"{kind}-{split}{_SUFFIXES[kind]}"
        rows = [_row(kind, f"the cat {MARKS[split]} {number}", number) for number in range(30)]
        path.write_text("".join(rows), "utf-8")
        files[split] = [str(path)]
    return files


def _row(kind: str, text: str, number: int) -> str:
    match kind:
        case "seq2seq":
            return f"{text}\t{text.replace('cat', 'dog')}\n"
        case "classify":
            return f"{text}\t{'ab'[number % 2]}\n"
        case "tag":
            return "".join(f"{word} {'B-a' if place == 1 else 'O'}\n" for place, word in enumerate(text.split())) + "\n"
        case _:
            return f"{text}\n"


def _save(root: Path, name: str, kind: str, data: dict[str, Sequence[str]]) -> Path:
    run = root / f"{MARKS['folder']}-{name}"
    task = task_of(kind)
    if isinstance(task, Seq2Seq):
        task = replace(task, settings=Seq2SeqSettings(source_language="en", target_language="zh"))
    recipe = Recipe.from_table({"data": data, "task": to_table(task.settings)})
    Bundle(task, SHORT, to_table(recipe)).save(run / "bundle")
    for file in ("report.html", "events.jsonl", "heads.jsonl"):
        (run / file).write_text(MARKS["report"], "utf-8")
    for step in (10, 20):
        with atomic_folder(run / "snapshots" / f"step-{step:08d}") as folder:
            save_tensors(weights_of(task.module), folder / "weights.safetensors")
    return run / "bundle"
