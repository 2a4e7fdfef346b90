"""Gold dependency trees as CoNLL-U has them: ten columns a word, blank lines between sentences.

Comments are passed over but for `# text =`, which says how the sentence is written. Words that are written as one
(don't, numbered 2-3) share its characters; words that are only understood (numbered 2.1) are left out.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from manyheads.corpora.builtin import Relation, Rendering
from manyheads.errors import DataError
from manyheads.text.files import check_readable, file_lines
from manyheads.text.suggestions import shortened

_COLUMNS = 10
_TEXT = "# text ="
_NO_SPACE = "SpaceAfter=No"
_UNTOLD = ("root", "punct")  # of these there is nothing to find


def read_trees(path: Path | str) -> Iterator[Rendering]:
    """Every sentence of a file: its text, where its words stand in it, and how each depends on its head.

    A relation keeps its general name: `nsubj` of `nsubj:pass`. What punctuation and the root depend on is left out.
    """
    path = Path(path)
    check_readable(path)
    return _sentences(path)


def _sentences(path: Path) -> Iterator[Rendering]:
    sentence = _Lines(path)
    found = False
    for number, line in enumerate(chain(file_lines(path, None), [""]), start=1):
        if line.strip():
            sentence.add(number, line)
        elif sentence.words:
            found = True
            yield sentence.rendering()
            sentence = _Lines(path)
        else:
            sentence = _Lines(path)
    if not found:
        raise DataError(f"{path} has no sentence. Give a CoNLL-U file: ten columns a word, tabs between them.")


class _Lines:
    """The lines of one sentence, as they come."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = ""
        self.words: list[str] = []
        self.heads: list[tuple[int, int, str]] = []  # the line, the number of the head, the relation
        self.written: list[tuple[str, int, bool]] = []  # a form, how many words it is of, whether a space follows
        self.covered = 0  # words up to this one are written as part of a form of several

    def add(self, number: int, line: str) -> None:
        if line.startswith("#"):
            if line.startswith(_TEXT):
                self.text = line.removeprefix(_TEXT).strip()
            return
        where = f"{self.path}, line {number}"
        cells = line.rstrip("\r").split("\t")
        if len(cells) != _COLUMNS:
            raise DataError(
                f"{where}: the number of columns is {len(cells)}, but CoNLL-U has {_COLUMNS}, with tabs between them."
            )
        name, form = cells[0], cells[1]
        is_spaced = _NO_SPACE not in cells[9].split("|")
        first, dash, last = name.partition("-")
        if "." in name:
            return
        if dash and first.isdecimal() and last.isdecimal() and int(first) == len(self.words) + 1 <= int(last):
            self.written.append((form, int(last) - int(first) + 1, is_spaced))
            self.covered = int(last)
            return
        if name != str(len(self.words) + 1):
            raise DataError(f'{where}: the word is numbered "{shortened(name)}", but should be {len(self.words) + 1}.')
        if not cells[6].isdecimal():
            raise DataError(f'{where}: the head is "{shortened(cells[6])}", but should be the number of a word, or 0.')
        self.words.append(form)
        self.heads.append((number, int(cells[6]), cells[7].partition(":")[0]))
        if len(self.words) > self.covered:
            self.written.append((form, 1, is_spaced))

    def rendering(self) -> Rendering:
        relations = []
        for word, (number, head, kind) in enumerate(self.heads):
            if head > len(self.words):
                raise DataError(
                    f"{self.path}, line {number}: the head is {head}, but the sentence has {len(self.words)} words."
                )
            if head and kind not in _UNTOLD:
                relations.append(Relation(kind, word, head - 1))
        text = self.text or "".join(form + " " * is_spaced for form, _, is_spaced in self.written).strip()
        return Rendering(text, tuple(self.words), tuple(self._spans(text)), tuple(relations))

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where each word stands in the text."""
        end = word = 0
        for form, n_words, _ in self.written:
            start = text.find(form, end)
            if start < 0 or text[end:start].strip():
                raise DataError(
                    f'{self.path}, line {self.heads[word][0]}: "{shortened(form)}" is not where it should be in the '
                    f'sentence\'s text, "{shortened(text)}".'
                )
            end = start + len(form)
            parts = self.words[word : word + n_words]
            if "".join(parts) != form:  # as French "du" is "de" and "le": each is all of it
                yield from [(start, end)] * n_words
            else:
                for part in parts:
                    yield start, start + len(part)
                    start += len(part)
            word += n_words
