"""Texts and token ids on disk."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from manyheads.data import Encoded, Ragged, RaggedWriter, Texts
from manyheads.data.texts import chunks
from manyheads.text.reading.readers import Row
from manyheads.text.tokens.tokenizer import Tokenizer, TokenizerSettings

PAIRS = [("a small cat", "一只小猫"), ("", "空"), ("the dog sleeps", "那条狗在睡觉"), ("long " * 200, "长" * 500)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    words = [
        "cat",
        "cats",
        "sleep",
        "sleeps",
        "small",
        "smaller",
        "the",
        "there",
        "dog",
        "dogs",
        "long",
        "小猫",
        "小狗",
    ]
    lines = [line for pair in PAIRS for line in pair] + [f"{a} {b}" for a in words for b in words]
    return Tokenizer.train(lines, TokenizerSettings(vocab_size=340))


def stored(folder: Path, tokenizer: Tokenizer) -> tuple[Encoded, "Counter[str]"]:
    Texts.write(folder / "text", PAIRS, 2)
    texts = Texts.open(folder / "text")

    def encode(rows: Sequence[Row]) -> list[list[list[int]]]:
        return [tokenizer.encode_batch([row[side] for row in rows]) for side in (0, 1)]

    counts = Encoded.write(folder / "ids", texts, encode, max_length=63)
    return Encoded.open(folder / "ids", texts), counts


def test_texts_round_trip(tmp_path: Path) -> None:
    pairs = [(f"line {number} é", "行" * (number % 7)) for number in range(25_000)]  # several chunks
    Texts.write(tmp_path, iter(pairs), 2)
    texts = Texts.open(tmp_path)
    assert len(texts) == len(pairs)
    assert list(texts) == pairs
    assert texts.columns[1].lengths.tolist() == [len(chinese.encode()) for _, chinese in pairs]
    assert [(texts.text(0, row), texts.text(1, row)) for row in (24_999, 3)] == [pairs[24_999], pairs[3]]


def test_ragged_round_trips(tmp_path: Path) -> None:
    rows = [[1, 2, 3], [], [4], [70_000]]
    with RaggedWriter(tmp_path / "ids", "int32") as writer:
        for row in rows:
            writer.append(row)
    ragged = Ragged(tmp_path / "ids", "int32")
    assert [ragged[index].tolist() for index in range(len(ragged))] == rows
    assert ragged.lengths.tolist() == [3, 0, 1, 1]
    ragged.release()
    assert ragged[0].tolist() == rows[0]


def test_empty_ragged_file_opens(tmp_path: Path) -> None:
    with RaggedWriter(tmp_path / "ids", "int32"):
        pass
    ragged = Ragged(tmp_path / "ids", "int32")
    assert (len(ragged), len(ragged.values), ragged.lengths.tolist()) == (0, 0, [])


def test_encoded_pairs_keep_ids_and_text_and_count_dropped_rows(tmp_path: Path, tokenizer: Tokenizer) -> None:
    pairs, counts = stored(tmp_path, tokenizer)
    assert counts == {"kept": 2, "empty": 1, "too long": 1}
    assert pairs.find_rows([0, 1, 2, 4]) == [0, 1, 1, 2]
    assert [(pairs.text(0, index), pairs.text(1, index)) for index in range(len(pairs))] == [PAIRS[0], PAIRS[2]]
    assert tokenizer.decode(pairs.columns[1][1].tolist()) == "那条狗在睡觉"
    assert pairs.lengths.tolist() == [[len(tokenizer.encode(text)) + 1 for text in PAIRS[row]] for row in (0, 2)]


def test_rows_with_any_number_of_fields(tmp_path: Path) -> None:
    rows = [("one", "a", ""), ("two", "", "b")]
    Texts.write(tmp_path / "text", rows, 3)
    texts = Texts.open(tmp_path / "text")
    assert list(texts) == rows
    Encoded.write(tmp_path / "ids", texts, lambda chunk: [[[len(row[0])] * 3 for row in chunk]], max_length=None)
    encoded = Encoded.open(tmp_path / "ids", texts)
    assert encoded.lengths.tolist() == [[4], [4]]
    assert [ids.tolist() for ids in encoded.ids(0, np.array([1, 0]))] == [[3, 3, 3]] * 2
    assert encoded.text(2, 1) == "b"


def test_chunks_have_a_bounded_number_of_rows_and_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyheads.data.texts._CHUNK_ROWS", 3)
    monkeypatch.setattr("manyheads.data.texts._CHUNK_CHARACTERS", 10)
    rows = [("a", ""), ("b", ""), ("c", ""), ("long", "longer"), ("d", ""), ("12345", "6789"), ("0", ""), ("e", "")]
    assert list(chunks(rows)) == [rows[:3], rows[3:4], rows[4:6], rows[6:]]
    assert list(chunks(rows[:3])) == [rows[:3]]
    assert list(chunks([])) == []
