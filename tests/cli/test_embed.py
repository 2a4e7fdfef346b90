"""`manyheads embed`: vectors of lines, arrays, and search."""

import json
from pathlib import Path

import numpy as np
import pytest

import manyheads as mh
from manyheads.bundle import load
from manyheads.cli.embed import nearest

from cli.conftest import Run
from tasks.small import save_encoder

LINES = ["two cats are sleeping", "", "a dog is running", "two dogs are sleeping"]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    (tmp_path / "lines.txt").write_text("\n".join(LINES) + "\n", "utf-8")
    return save_encoder(tmp_path / "encoder", [(line,) for line in LINES if line])


def test_each_line_becomes_a_vector(manyheads: Run, bundle: Path, tmp_path: Path) -> None:
    done = manyheads("embed", "encoder", "lines.txt")
    assert (done.returncode, done.stderr) == (0, "")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    expected = load(bundle).embed(LINES)
    assert expected.shape == (4, 32) and not expected[1].any()
    assert found[1] == []
    np.testing.assert_allclose([found[0], found[2], found[3]], expected[[0, 2, 3]], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(expected[[0, 2]], axis=1), 1.0, atol=1e-5)
    assert manyheads("embed", "encoder", "lines.txt", "-o", "lines.npy").stdout == "Wrote 4 vectors of 32 numbers.\n"
    np.testing.assert_allclose(np.load(tmp_path / "lines.npy"), expected, atol=1e-6)
    np.testing.assert_array_equal(mh.embed(bundle, LINES), expected)


def test_search_writes_the_nearest_lines(manyheads: Run, bundle: Path) -> None:
    done = manyheads("embed", "encoder", "lines.txt", "--search", "a dog is running", "--top", "2")
    assert (done.returncode, done.stderr) == (0, "")
    first, second = (line.split("\t") for line in done.stdout.splitlines())
    assert first == ["1.0000", "3", "a dog is running"]
    assert float(second[0]) < 1


def test_nearest_orders_by_cosine_and_leaves_zeros_out() -> None:
    vectors = np.array([[1, 1], [0, 0], [-1, 0], [5, 0]], np.float32)
    found = nearest(np.array([2, 0], np.float32), vectors, 10)
    assert [number for _, number in found] == [3, 0, 2]
    assert [round(cosine, 3) for cosine, _ in found] == [1.0, 0.707, -1.0]


def test_faults_are_one_line(manyheads: Run, bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("", "utf-8")
    for arguments, message in (
        (("nowhere.txt",), "nowhere.txt: there is no such file."),
        (("empty.txt", "-o", "x.npy"), "empty.txt is empty. Give a file with text."),
        (("lines.txt", "-o", "no/x.npy"), "no/x.npy: the folder no does not exist."),
    ):
        done = manyheads("embed", "encoder", *arguments)
        assert (done.returncode, done.stderr) == (1, f"Error: {message}\n")
    assert "--search is empty" in manyheads("embed", "encoder", "lines.txt", "--search", " ").stderr
    with pytest.raises(TypeError, match="embed takes a list of texts"):
        load(bundle).embed("a text")
