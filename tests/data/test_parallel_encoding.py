"""Encoding by several processes: the bytes of one process, whatever happens to the others."""

import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from manyheads.data import Encoded, Texts
from manyheads.data import parallel_encoding as module
from manyheads.data.parallel_encoding import choose_processes, encode_texts, row_ranges
from manyheads.errors import DataError
from manyheads.text.reading.readers import Row

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
ROWS = [("x" * (number % 40), "中" * (number % 7)) for number in range(3000)]


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Texts:
    monkeypatch.setattr(module, "_RANGE_ROWS", 130)
    monkeypatch.setattr(module, "_BATCH_ROWS", 50)
    Texts.write(tmp_path / "text", ROWS, 2)
    return Texts.open(tmp_path / "text")


def encode(rows: Sequence[Row]) -> list[list[list[int]]]:
    return [[[ord(character) % 97 for character in row[side]] for row in rows] for side in (0, 1)]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_ranges_cover_every_row_once_within_bounds(texts: Texts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RANGE_BYTES", 2000)
    ranges = list(row_ranges(texts))
    assert [ranges[0][0], *(end for _, end in ranges)] == [start for start, _ in ranges] + [len(ROWS)]
    sizes = [sum(len(field.encode()) for row in ROWS[start:end] for field in row) for start, end in ranges]
    assert max(sizes) <= 2000
    assert [row for start, end in ranges for row in texts.rows(start, end)] == ROWS == list(texts)
    monkeypatch.setattr(module, "_RANGE_BYTES", 1)
    assert len(list(row_ranges(texts))) == len(ROWS)


@pytest.mark.parametrize("n_processes", [1, 2, 3])
def test_files_do_not_depend_on_the_number_of_processes(texts: Texts, tmp_path: Path, n_processes: int) -> None:
    counts = Encoded.write(tmp_path / "ids", texts, encode, 30, n_processes=n_processes)
    kept = [row for row, (one, other) in enumerate(ROWS) if one and other and len(one) <= 30]
    encoded = Encoded.open(tmp_path / "ids", texts)
    assert encoded.rows.values.tolist() == kept
    for side in (0, 1):
        expected = encode([ROWS[row] for row in kept])[side]
        assert [encoded.columns[side][index].tolist() for index in range(len(kept))] == expected
    n_empty = sum(not one or not other for one, other in ROWS)
    assert counts == Counter({"kept": len(kept), "empty": n_empty, "too long": len(ROWS) - len(kept) - n_empty})
    Encoded.write(tmp_path / "again", texts, encode, 30, n_processes=1)
    assert contents(tmp_path / "again") == contents(tmp_path / "ids")


def test_processes_that_die_are_made_up_for(texts: Texts, tmp_path: Path) -> None:
    this_process = os.getpid()

    def encode_or_die(rows: Sequence[Row]) -> list[list[list[int]]]:
        if os.getpid() != this_process and rows[0] == ROWS[130 * 7 % len(ROWS)]:
            os.kill(os.getpid(), signal.SIGKILL)
        return encode(rows)

    Encoded.write(tmp_path / "ids", texts, encode_or_die, 30, n_processes=2)
    Encoded.write(tmp_path / "again", texts, encode, 30)
    assert contents(tmp_path / "again") == contents(tmp_path / "ids")


def test_errors_are_raised_here_and_no_process_is_left(texts: Texts) -> None:
    def fail(rows: Sequence[Row]) -> list[list[list[int]]]:
        raise DataError("Line 5 cannot be encoded.")

    with pytest.raises(DataError, match=r"Line 5 cannot be encoded\."):
        list(encode_texts(texts, fail, 30, n_processes=2))
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    assert not [child for child in children if b"Z" in Path(f"/proc/{child}/stat").read_bytes().split()[2:3]]


def test_little_text_is_encoded_by_one_process(texts: Texts, monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_processes(texts, 8) == 1
    monkeypatch.setattr(module, "_MIN_BYTES", 1000)
    assert choose_processes(texts, 8) == 8
