"""The hash set against a Python set, in memory and on disk."""

import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.data import hash_set as hash_set_module
from manyheads.data.cleaning import Cleaner, CleanSettings, clean
from manyheads.data.hash_set import HashSet


@pytest.mark.parametrize("is_stored", [False, True])
@given(chunks=st.lists(st.lists(st.integers(0, 50), max_size=40), max_size=20))
def test_hash_set_matches_a_python_set(
    tmp_path_factory: pytest.TempPathFactory, is_stored: bool, chunks: list[list[int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hash_set_module, "_STORED_FROM", 5)
        patch.setattr(hash_set_module, "_BLOCK", 3)
        hash_set, plain = HashSet(tmp_path_factory.getbasetemp() if is_stored else None), set[int]()
        for chunk in chunks:
            expected = []
            for number in chunk:
                expected.append(number not in plain)
                plain.add(number)
            assert hash_set.add(np.array(chunk, dtype=np.uint64)).tolist() == expected
            assert len(hash_set) == len(plain)
    assert hash_set.has(np.arange(51, dtype=np.uint64)).tolist() == [number in plain for number in range(51)]


def peak_of(hash_set: HashSet, n_numbers: int) -> int:
    numbers = np.random.default_rng(1).integers(0, 2**63, n_numbers).astype(np.uint64)
    tracemalloc.start()
    for start in range(0, len(numbers), 10_000):
        hash_set.add(numbers[start : start + 10_000])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(hash_set) == len(numbers)
    return peak


def test_hash_set_takes_less_than_twenty_bytes_per_number() -> None:
    assert peak_of(HashSet(), 400_000) < 20 * 400_000


def test_memory_of_a_set_on_disk_does_not_grow_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hash_set_module, "_STORED_FROM", 50_000)
    monkeypatch.setattr(hash_set_module, "_BLOCK", 20_000)
    assert peak_of(HashSet(tmp_path), 400_000) < 3_000_000 < peak_of(HashSet(), 400_000)
    assert list(tmp_path.iterdir()) == []  # its files have no names, so nothing is left of a killed process


def test_cleaning_with_hashes_on_disk_keeps_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hash_set_module, "_STORED_FROM", 1000)
    monkeypatch.setattr("manyheads.data.texts._CHUNK_ROWS", 700)
    keys = [number * 7919 % 6007 for number in range(9000)]
    rows = [(f"s{key}", f"t{key}") for key in keys]
    counts, stored_counts = Counter[str](), Counter[str]()
    kept = list(clean(rows, CleanSettings(), counts))
    assert list(Cleaner(CleanSettings(), scratch=tmp_path).clean(rows, stored_counts)) == kept
    assert counts == stored_counts
    assert counts["kept"] == 6007
