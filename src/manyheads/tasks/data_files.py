"""Data files as `manyheads init` gets them: the split in a file's name, plain text, CoNLL columns, parallel files."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from manyheads.tasks.columns import Column, columns_in
from manyheads.text.language_codes import language_of_suffix
from manyheads.text.reading.files import check_readable, first_lines, format_suffix
from manyheads.text.reading.formats import format_of, is_table
from manyheads.text.reading.readers import columns_of
from manyheads.text.reading.tag_schemes import OUTSIDE, is_tag

SPLITS = {  # testa and testb are CoNLL's names
    "train": ("train", "training"),
    "valid": ("valid", "validation", "val", "dev", "testa"),
    "test": ("test", "testb"),
}
PLAIN_TEXT = (".txt", ".text", ".md")

_NOT_DATA = ("readme", "license", "licence", "citation", "changelog")
_LINES = 5000  # lines read to recognize a file
_NEARLY_ALL = 0.95
_MAX_WORD_LABELS = 100  # labels of words, such as parts of speech
_LONGEST_MEAN_SENTENCE = 200  # words


def split_in_name(path: Path) -> str:
    """The split that a file name contains ("train", "valid" or "test"); "" if it contains none."""
    word = around_split(path)[1].lower()
    return next((split for split, words in SPLITS.items() if word in words), "")


def around_split(path: Path) -> tuple[str, str, str]:
    """A file name in three parts: the text before the word that names its split, that word, and the text after it."""
    known = {word for words in SPLITS.values() for word in words}
    for word in re.finditer(r"[^._\-0-9]+", path.name):
        if word.group().lower() in known:
            return path.name[: word.start()], word.group(), path.name[word.end() :]
    return path.name, "", ""


def are_plain_text(files: Sequence[Path]) -> bool:
    """Whether the files are plain text and not named after languages, as parallel files are."""
    return all(format_suffix(path) in PLAIN_TEXT for path in files) and not all(map(language_of_suffix, files))


@dataclass(frozen=True)
class FolderListing:
    """The data files and the subfolders of a folder."""

    folder: Path
    files: Sequence[Path]
    folders: Sequence[Path]

    @classmethod
    def of(cls, folder: Path) -> "FolderListing":
        """List a folder; hidden files and files such as README are left out."""
        visible = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
        files = [path for path in visible if path.is_file() and not path.name.lower().startswith(_NOT_DATA)]
        return cls(folder, files, [path for path in visible if path.is_dir()])

    @property
    def training_files(self) -> Sequence[Path]:
        """The files named "train"; else those named after no split; else all."""
        training = [path for path in self.files if split_in_name(path) == "train"]
        return training or [path for path in self.files if not split_in_name(path)] or self.files


@dataclass(frozen=True)
class DataFiles:
    """The training files, and what their names and first lines show."""

    paths: Sequence[Path]
    is_folder: bool = False  # whether the user gave their folder

    @property
    def is_table(self) -> bool:
        """Whether this is one file with columns that is not in CoNLL format."""
        return len(self.paths) == 1 and is_table(self.paths[0]) and not self.is_conll

    @cached_property
    def header(self) -> Sequence[str]:
        """The column names of a table; without a header, the values of its first row."""
        return columns_of(self.paths[0])

    @cached_property
    def columns(self) -> Sequence[Column]:
        """The columns of a table."""
        return columns_in(self.paths[0])

    @cached_property
    def is_plain_text(self) -> bool:
        """Whether every file is plain text and not named after a language."""
        return are_plain_text(self.paths)

    @property
    def are_documents(self) -> bool:
        """Whether these are several files of plain text: from a folder, or more than two."""
        return self.is_plain_text and len(self.paths) > 1 and (self.is_folder or len(self.paths) > 2)

    @cached_property
    def first_lines(self) -> list[str]:
        """The first lines of the first file."""
        check_readable(self.paths[0])
        return first_lines(self.paths[0], _LINES)

    @cached_property
    def parallel(self) -> Sequence[Column] | None:
        """The lines of two or three files with the same number of lines, one column for each; else None."""
        if not 2 <= len(self.paths) <= 3 or self.are_documents:
            return None
        if any(map(is_table, self.paths)) or not all(path.is_file() for path in self.paths):
            return None
        sides = [first_lines(path, _LINES) for path in self.paths]
        if len({len(side) for side in sides}) > 1:
            return None
        return [Column(str(path), side) for path, side in zip(self.paths, sides, strict=True)]

    @cached_property
    def is_conll(self) -> bool:
        """Whether one file has a word and its tag on each line.

        Blank lines between sentences, or tags such as B-PER, distinguish it from a table.
        """
        if len(self.paths) != 1:
            return False
        table = format_of(self.paths[0])
        if table is not None and not table.is_tab_separated:
            return False
        lines = self.first_lines
        rows = [line.split() for line in lines if line.strip() and not line.startswith(("#", "-DOCSTART-"))]
        widths = Counter(map(len, rows))
        if not rows or max(widths) < 2 or widths.most_common(1)[0][1] < _NEARLY_ALL * len(rows):
            return False
        width = widths.most_common(1)[0][0]
        has_blank_lines = len(rows) < len(lines)
        for column in zip(*(row for row in rows if len(row) == width), strict=True):
            n_tags = sum(map(is_tag, column))
            spans = [tag for tag in column if tag != OUTSIDE and is_tag(tag)]
            if n_tags >= _NEARLY_ALL * len(column) and spans and (has_blank_lines or any("-" in tag for tag in spans)):
                return True
        return _are_labeled_words(rows, width, len(lines) - len(rows))


def _are_labeled_words(rows: Sequence[Sequence[str]], width: int, n_blank: int) -> bool:
    """Whether lines are words with labels such as parts of speech: many words, few labels, sentences of some words."""
    if not n_blank or not 2 <= len(rows) / n_blank <= _LONGEST_MEAN_SENTENCE:
        return False
    words, labels = ({row[column] for row in rows if len(row) == width} for column in (0, width - 1))
    return 2 <= len(labels) <= min(_MAX_WORD_LABELS, len(words) // 2) and len(labels) <= len(rows) / 10
