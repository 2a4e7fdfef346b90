"""Objects of a store as local files: copied once per version, with clear errors."""

import sys
from pathlib import Path

import pytest

from manyheads.errors import DataError
from manyheads.run.recipe import read_recipe
from manyheads.text.reading.remote_files import is_remote, local_copy

fsspec = pytest.importorskip("fsspec")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("manyheads.text.reading.remote_files.user_cache_folder", lambda name: tmp_path / "cache" / name)
    return tmp_path / "cache" / "remote"


def put(address: str, content: bytes) -> None:
    with fsspec.open(address, "wb") as stream:
        stream.write(content)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("s3://bucket/x", True), ("memory://x", True), ("a/b", False), ("C://x", False), ("-", False)],
)
def test_addresses_are_told_from_paths(name: str, expected: bool) -> None:
    assert is_remote(name) is expected


def test_an_object_is_copied_once_and_again_if_it_changes(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put("memory://bucket/text.en", b"one\n")
    first = local_copy("memory://bucket/text.en")
    assert (first.name, first.read_bytes()) == ("text.en", b"one\n")
    with monkeypatch.context() as patch:
        patch.setattr("manyheads.text.reading.remote_files.shutil.copyfileobj", None)  # a second copy would fail
        assert local_copy("memory://bucket/text.en") == first
    put("memory://bucket/text.en", b"another\n")
    assert local_copy("memory://bucket/text.en").read_bytes() == b"another\n"
    assert not list(own_cache.rglob("*.partial"))


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("memory://bucket/absent", "memory://bucket/absent: there is no such object in the store."),
        ("memory://bucket", "memory://bucket: there is no such object in the store."),
        ("ftp://127.0.0.1:1/text", "ftp://127.0.0.1:1/text cannot be read (ConnectionRefusedError: "),
        ("nostore://bucket/text", "nostore://bucket/text cannot be read (ValueError: Protocol not known"),
    ],
)
def test_what_cannot_be_reached_is_one_clear_line(address: str, message: str) -> None:
    put("memory://bucket/text", b"x\n")
    with pytest.raises(DataError) as error:
        local_copy(address)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_without_fsspec_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(DataError, match=r"needs fsspec: pip install 'manyheads\[remote\]'"):
        local_copy("s3://bucket/text")


def test_a_copy_that_breaks_off_leaves_nothing(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put("memory://bucket/text", b"0123456789")
    monkeypatch.setattr(
        "manyheads.text.reading.remote_files.shutil.copyfileobj",
        lambda source, stream, size: stream.write(source.read(4)),
    )
    with pytest.raises(DataError, match="4 of 10 bytes arrived"):
        local_copy("memory://bucket/text")
    assert not [path for path in own_cache.rglob("*") if path.is_file()]


def test_a_recipe_may_name_objects(tmp_path: Path) -> None:
    put("memory://bucket/train.en", b"a\n")
    put("memory://bucket/train.de", b"b\n")
    (tmp_path / "recipe.toml").write_text(
        '[data]\ntrain = ["memory://bucket/train.en", "memory://bucket/train.de"]\n', "utf-8"
    )
    train = read_recipe(tmp_path / "recipe.toml").data.train
    assert [Path(file).read_text() for file in train] == ["a\n", "b\n"]
    assert [Path(file).name for file in train] == ["train.en", "train.de"]
