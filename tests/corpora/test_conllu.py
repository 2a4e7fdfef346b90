"""CoNLL-U: comments, multiword tokens, empty nodes, error messages."""

from pathlib import Path

import pytest

from manyheads.corpora import Relation
from manyheads.corpora.conllu import read_trees
from manyheads.errors import DataError


def row(number: str, form: str, head: str, relation: str, misc: str = "_") -> str:
    return "\t".join([number, form, "_", "_", "_", "_", head, relation, "_", misc])


def write(path: Path, *lines: str) -> Path:
    file = path / "gold.conllu"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_sentence_with_every_feature(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        "# sent_id = 1",
        "# text = I don't see it.",
        row("1", "I", "4", "nsubj:pass"),
        row("2-3", "don't", "_", "_"),
        row("2", "do", "4", "aux"),
        row("3", "n't", "4", "advmod"),
        row("3.1", "understood", "_", "_"),
        row("4", "see", "0", "root"),
        row("5", "it", "4", "obj", "SpaceAfter=No"),
        row("6", ".", "4", "punct"),
    )
    (tree,) = read_trees(file)
    assert tree.words == ("I", "do", "n't", "see", "it", ".")
    assert [tree.text[start:end] for start, end in tree.spans] == list(tree.words)
    assert tree.relations == (
        Relation("nsubj", 0, 3),
        Relation("aux", 1, 3),
        Relation("advmod", 2, 3),
        Relation("obj", 4, 3),
    )


def test_sentence_without_text_is_joined_by_its_spaces(tmp_path: Path) -> None:
    file = write(tmp_path, row("1", "加速", "2", "compound", "SpaceAfter=No"), row("2", "度", "0", "root"), "", "")
    (tree,) = read_trees(file)
    assert tree.text == "加速度"
    assert tree.spans == ((0, 2), (2, 3))


def test_words_of_a_contraction_share_its_span(tmp_path: Path) -> None:
    lines = (row("1-2", "du", "_", "_"), row("1", "de", "2", "case"), row("2", "le", "0", "root"))
    (tree,) = read_trees(write(tmp_path, *lines))
    assert tree.spans == ((0, 2), (0, 2))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1\tone"], "line 1: the number of columns is 2, but CoNLL-U has 10"),
        ([row("1", "a", "0", "root"), row("3", "b", "1", "x")], 'line 2: the word is numbered "3", but should be 2'),
        ([row("1", "a", "_", "root")], 'line 1: the head is "_"'),
        ([row("1", "a", "9" * 5000, "obj")], 'line 1: the head is "9{200}…", but should be the number'),
        ([row("1-" + "9" * 5000, "a", "_", "_")], 'line 1: the word is numbered "1-9{198}…", but should be 1'),
        (
            [row("1-900000000", "du", "_", "_"), row("1", "de", "0", "root")],
            "line 2: the sentence has 1 words, but a multiword token ends at word 900000000",
        ),
        ([row("1", "a", "7", "obj")], "line 1: the head is 7, but the sentence has 1 words"),
        (["# text = b", row("1", "a", "0", "root")], 'line 2: "a" is not at the expected position'),
        (["# nothing else"], "has no sentence"),
    ],
)
def test_error_messages(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message.replace("(", r"\(")):
        list(read_trees(write(tmp_path, *lines)))


def test_missing_file_raises_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        read_trees(tmp_path / "gold.conllu")
