"""Which files are the training, valid and test sets, and which languages they hold: told by names and scripts."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from manyheads.data import CleanSettings
from manyheads.errors import DataError
from manyheads.run.recipe import DataSettings
from manyheads.tasks import Seq2SeqSettings, TaskSettings
from manyheads.text.readers import columns_of
from manyheads.text.suggestions import shortened

SPLITS = {  # testa and testb are what CoNLL calls them
    "train": ("train", "training"),
    "valid": ("valid", "validation", "val", "dev", "testa"),
    "test": ("test", "testb"),
}

_ALL_CODES = (
    "aa ab af ak am an ar as az ba be bg bn bo br bs ca ceb co cs cy da de dz ee el en eo es et eu fa fi fj fo fr fy "
    "ga gd gl gn gu ha he hi hr ht hu hy ia id ig is it ja jv ka kk km kn ko ku ky la lb lg ln lo lt lv mg mi mk ml mn "
    "mr ms mt my nb ne nl nn no ny oc om or pa pl ps pt qu rm rn ro ru rw sa sd se sg si sk sl sm sn so sq sr ss st su "
    "sv sw ta te tg th ti tk tl tn to tr ts tt tw ug uk ur uz vi vo wa wo xh yi yo yue zh zu"
)
_CODES = frozenset(_ALL_CODES.split(" "))
_REGION = re.compile(r"[-_](?:[A-Z]{2}|[A-Z][a-z]{3})$")  # zh-CN, zh_Hans
_PACKED = (".gz", ".zst")
_HOLDS_PAIRS = (".tsv", ".csv", ".jsonl", ".parquet")
_SIDES = (("source", "target"), ("src", "tgt"), ("src", "trg"))  # what columns are called where not by a language
# A script that one language has to itself, or nearly so.
_SCRIPTS = {"ja": "\u3040-\u30ff", "ko": "\uac00-\ud7a3", "zh": "\u4e00-\u9fff", "th": "\u0e01-\u0e5b"}
_SCRIPTS |= {"el": "\u0370-\u03ff", "he": "\u0590-\u05ff", "ka": "\u10a0-\u10ff", "hy": "\u0530-\u058f"}
_ENOUGH = 0.1  # of the letters: English words stand in many a Chinese text, kana among the kanji of every Japanese one


@dataclass(frozen=True, kw_only=True)
class RecognizedData:
    """Files by split, source first; and what is known of them."""

    settings: DataSettings
    languages: tuple[str, str] = ("", "")  # what names tell
    found_splits: tuple[str, ...] = ()  # the splits whose files were not given, but stood beside the others
    task: TaskSettings = field(default_factory=Seq2SeqSettings)
    clean: CleanSettings = field(default_factory=CleanSettings)
    reason: str = ""  # it is this task


def find_split_files(
    given: Sequence[Path],
    valid: Sequence[Path] = (),
    test: Sequence[Path] = (),
    direction: tuple[str, str] = ("", ""),
    columns: tuple[str, str] = ("", ""),
) -> RecognizedData:
    """The sets that are meant by a folder or by some files; `direction` is the languages, where they are told."""
    if len(given) == 1 and given[0].is_dir():
        given = training_files(given[0], direction)
    if len(given) > 2:
        raise DataError(
            f"{len(given)} files are given. Give two parallel ones, or one of pairs ({', '.join(_HOLDS_PAIRS)})."
        )
    sets: dict[str, Sequence[Path]] = {"train": given, "valid": valid, "test": test}
    found = []
    for split in ("valid", "test"):
        if not sets[split]:
            sets[split] = sibling_files(given, split)
            found += [split] if sets[split] else []
    for files in sets.values():
        _refuse_twice(files)
    languages = languages_of_names(given)
    for files in (given, valid, test):
        _refuse_exchanged(files, direction if all(direction) else languages)
    if len(given) == 1 and not any(columns):
        columns = _columns_of(given[0], direction)
        if columns != ("", "") and all(map(is_language, columns)):
            languages = columns
    settings = DataSettings(
        train=tuple(map(str, sets["train"])),
        valid=tuple(map(str, sets["valid"])),
        test=tuple(map(str, sets["test"])),
        source_column=columns[0],
        target_column=columns[1],
    )
    return RecognizedData(settings=settings, languages=languages, found_splits=tuple(found))


def _refuse_twice(files: Sequence[Path]) -> None:
    if len(files) == 2 and files[0].resolve() == files[1].resolve():
        raise DataError(f"{files[0]} is given twice. Give the text and its translation.")


def _refuse_exchanged(files: Sequence[Path], direction: tuple[str, str]) -> None:
    """Two files whose names say that they go the other way than is wanted."""
    named = languages_of_names(files) if len(files) == 2 else ("", "")
    first, second = map(base_of, named)
    if first != second and (second, first) == (base_of(direction[0]), base_of(direction[1])):
        raise DataError(
            f"{files[0]} and {files[1]} go from {named[0]} to {named[1]}, but {' → '.join(direction)} is wanted. "
            "Exchange the two files."
        )


def _columns_of(path: Path, direction: tuple[str, str]) -> tuple[str, str]:
    """The columns of source and target; none where the file has but two and no header."""
    columns = columns_of(path)
    picked = pick_columns(columns, direction)
    if picked is None and _ending(path) == ".tsv" and len(columns) == 2:
        return "", ""
    if picked is None:
        if len(columns) == 1:
            raise DataError(f"{path} has one column only. Give source and target in two, or give two parallel files.")
        raise DataError(
            f"{path}: it is not clear which columns to translate (there is: {shortened(', '.join(columns))}). "
            f"Say so with --source-column and --target-column.{_without_header(path)}"
        )
    return picked


def _without_header(path: Path) -> str:
    is_table = _ending(path) in (".tsv", ".csv")
    return " If there is no header: --source-column 1 --target-column 2." if is_table else ""


def languages_of_names(files: Sequence[Path]) -> tuple[str, str]:
    """Source and target as the files are called: a.en + a.de, or news.en-de.tsv; "" where they do not tell."""
    if len(files) == 2:
        source, target = (language_of_suffix(path) for path in files)
        return (source, target) if source and target and source != target else ("", "")
    return _direction(_stem(files[0]))


def language_of_text(text: str) -> str:
    """The language whose very own script a text is written in; "" where many languages share it."""
    n_letters = sum(map(str.isalpha, text))
    for language, letters in _SCRIPTS.items():
        if n_letters and len(re.findall(f"[{letters}]", text)) > _ENOUGH * n_letters:
            return language
    return ""


def pick_columns(columns: Sequence[str], direction: tuple[str, str]) -> tuple[str, str] | None:
    """The columns that hold source and target, where their names tell: source and target, en and zh, …"""
    by_name = {name.strip().lower(): name for name in columns}
    first, second = (language.lower() for language in direction)
    if first in by_name and second in by_name:
        return by_name[first], by_name[second]
    for source, target in _SIDES:
        if source in by_name and target in by_name:
            return by_name[source], by_name[target]
    languages = [name for name in columns if is_language(name.strip()) or is_language(name.strip().lower())]
    if len(languages) == 3:  # then id is a number, not Indonesian
        languages = [name for name in languages if name.strip().lower() != "id"]
    return (languages[0], languages[1]) if len(languages) == 2 else None


def is_language(word: str) -> bool:
    """Whether a word is the code of a language, with or without a region."""
    return _REGION.sub("", word) in _CODES


def base_of(language: str) -> str:
    """The code without its region: zh-CN → zh."""
    return language.replace("_", "-").partition("-")[0].lower()


def training_files(folder: Path, direction: tuple[str, str]) -> tuple[Path, ...]:
    """The training set of a folder: its one file of pairs, or the two parallel files, source first."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    training = [path for path in files if split_of(path) == "train"] or files
    pairs = [path for path in training if _ending(path) in _HOLDS_PAIRS]
    if len(pairs) == 1:
        return (pairs[0],)
    by_language = {language_of_suffix(path): path for path in training if language_of_suffix(path)}
    if not all(direction):
        # A folder is often called by its direction: multi30k-en-de/raw.
        named = (_direction(part) for part in reversed(folder.resolve().parts))
        direction = next((pair for pair in named if set(pair) <= set(by_language)), direction)
    if set(direction) <= set(by_language):
        return by_language[direction[0]], by_language[direction[1]]
    if len(by_language) == 2 == len(training):
        return tuple(by_language[language] for language in sorted(by_language, key=lambda code: (code != "en", code)))
    there = ", ".join(path.name for path in files[:8]) or "nothing"
    raise DataError(
        f"{folder}: it is not clear which files to train on (there is: {there}). Name them: one file of pairs, "
        "or two parallel ones, source first."
    )


def sibling_files(training: Sequence[Path], split: str) -> tuple[Path, ...]:
    """The valid or test set that stands beside the training files and is called like them, in all its parts.

    Beside train.de: val.de, test_2016.de; beside eng.train: eng.testa; beside train/seq.in: valid/seq.in.
    """
    if not training or not all(split_of(path) == "train" for path in training):
        return _sibling_folder_files(training, split)
    columns = []
    for path in training:
        head, _, tail = _around_split(path)  # of train.lc.tok.de: nothing and .lc.tok.de
        siblings = sorted(path.parent.glob("*")) if path.parent.is_dir() else []
        columns.append(
            {
                other.name[len(head) : len(other.name) - len(tail)]: other
                for other in siblings
                if other.name.startswith(head)
                and other.name[len(head) :].endswith(tail)
                and _around_split(other)[0] == head
                and split_of(other) == split
            }
        )
    common = [middle for middle in columns[0] if all(middle in column for column in columns)]
    if not common:
        return ()
    best = min(common, key=lambda middle: (len(middle), middle))
    return tuple(column[best] for column in columns)


def _sibling_folder_files(training: Sequence[Path], split: str) -> tuple[Path, ...]:
    """The files of the same names in a folder beside that of the training files, where that is called train."""
    folders = {path.parent.resolve() for path in training}
    if len(folders) != 1 or split_of(min(folders)) != "train":
        return ()
    others = sorted(path for path in min(folders).parent.iterdir() if path.is_dir() and split_of(path) == split)
    for folder in others:
        files = tuple(training[0].parent.parent / folder.name / path.name for path in training)
        if all(path.is_file() for path in files):
            return files
    return ()


def split_of(path: Path) -> str:
    """What a file is for, by the first word of its name that tells; "" where none does."""
    word = _around_split(path)[1].lower()
    return next((split for split, words in SPLITS.items() if word in words), "")


def _around_split(path: Path) -> tuple[str, str, str]:
    """A name in three: what comes before the word that tells its split, that word, and what follows."""
    known = {word for words in SPLITS.values() for word in words}
    for word in re.finditer(r"[^._\-0-9]+", path.name):
        if word.group().lower() in known:
            return path.name[: word.start()], word.group(), path.name[word.end() :]
    return path.name, "", ""


def _unpacked(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() in _PACKED else path


def _ending(path: Path) -> str:
    return _unpacked(path).suffix.lower()


def _stem(path: Path) -> str:
    return _unpacked(path).stem


def language_of_suffix(path: Path) -> str:
    """train.lc.norm.tok.de → de; train.de.txt → de; de.txt → de."""
    parts = [part for part in _unpacked(path).name.split(".") if part.lower() not in ("txt", "text")]
    return parts[-1].replace("_", "-") if is_language(parts[-1]) else ""


def _direction(name: str) -> tuple[str, str]:
    """news.en-de → en, de; multi30k-en-de → en, de."""
    words: Iterable[tuple[str, str]] = re.findall(r"(?<![A-Za-z])(?=([a-z]{2,3})[-_]([a-z]{2,3})(?![A-Za-z]))", name)
    found = Counter(pair for pair in words if pair[0] != pair[1] and {*pair} <= _CODES)
    return next(iter(found)) if len(found) == 1 else ("", "")
