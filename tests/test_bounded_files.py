import os
import time
from pathlib import Path
from typing import Any

import pytest

from manyheads.bounded_files import MAX_BYTES, BoundsError, parse_json, parse_toml, read_bounded, read_json_object
from manyheads.errors import BundleError

DEEP = "it is nested more than 32 levels deep"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"a = " + b"[" * 33 + b"]" * 33, DEEP),
        (b"a = " + b"[" * 100_000, DEEP),
        (b"a = " + b"{b = " * 100_000, DEEP),
        (b"a." * 50 + b"a = 1", DEEP),
        (b"[" + b"a." * 50 + b"a]", DEEP),
        (b'"a" . ' * 50 + b"a = 1", DEEP),
        (b"a = " + b"9" * 5000, "it contains an integer of more than 4,300 digits"),
        (b"[model]\nwidth = 0x" + b"f" * 5000, "model.width is an integer of more than 64 bits"),
        (b"[model]\nwidth = 9223372036854775808", "model.width is an integer of more than 64 bits"),
        (b"a = 1\na = 2", "not valid TOML: Cannot overwrite a value (at end of document)"),
        (b"a = '\xff'", "byte 5 is not UTF-8"),
        (b"a = '\0'", "not valid TOML: Found invalid character '\\x00' (at line 1, column 6)"),
    ],
    ids=lambda value: str(value[:20]),
)
def test_hostile_toml_is_refused_with_a_reason(content: bytes, fault: str) -> None:
    with pytest.raises(BoundsError) as caught:
        parse_toml(content)
    assert str(caught.value) == fault


def test_toml_within_the_limits_is_read() -> None:
    assert parse_toml(b"\xef\xbb\xbfa = 9223372036854775807\n") == {"a": 2**63 - 1}
    assert parse_toml(b"a = " + b"[" * 31 + b"]" * 31)
    files = "\n".join(f'"folder.{number}/file.{number}.txt",' for number in range(1000))
    assert len(parse_toml(f"train = [\n{files}\n]".encode())["train"]) == 1000


@pytest.mark.parametrize("content", [b"a." * 1_000_000, b'"a".' * 500_000, b"a" * 2_000_000, b"'" * 1_000_000])
def test_long_keys_are_refused_quickly(content: bytes) -> None:
    start = time.process_time()
    with pytest.raises(BoundsError):
        parse_toml(content)
    assert time.process_time() - start < 5  # tomllib alone takes hours for the first


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"[" * 100_000, DEEP),
        (b"[" * 33 + b"1" + b"]" * 33, DEEP),
        (b'{"a":' * 40 + b"1" + b"}" * 40, DEEP),
        (b'{"a": 1, "b": 2, "a": 3}', 'the key "a" occurs twice'),
        (b'{"a": {"b c": [1, 18446744073709551616]}}', 'a."b c" is an integer of more than 64 bits'),
        (b"9" * 5000, "it contains an integer of more than 4,300 digits"),
        (b'{"a": "\\ud800"}', "a contains half of a surrogate pair, which is not a character"),
        (b'{"\\udfff": 1}', "a value contains half of a surrogate pair, which is not a character"),
        (b"\xff", "byte 0 is not UTF-8"),
        (b"{", "not valid JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
    ],
    ids=lambda value: str(value[:20]),
)
def test_hostile_json_is_refused_with_a_reason(content: bytes, fault: str) -> None:
    with pytest.raises(BoundsError) as caught:
        parse_json(content)
    assert str(caught.value) == fault


@pytest.mark.parametrize(
    ("content", "value"), [(b'\xef\xbb\xbf{"a": "\\ud83d\\ude00"}', {"a": "😀"}), (b"[[[1.5]]]", [[[1.5]]])]
)
def test_json_within_the_limits_is_read(content: bytes, value: Any) -> None:
    assert parse_json(content) == value


def test_no_more_than_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    path.write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(BundleError, match=r"large\.json: the file has more than 8,000,000 bytes\.$"):
        read_json_object(path, BundleError)
    with pytest.raises(BoundsError, match="more than 100 bytes"):
        read_bounded(Path("/dev/zero"), 100)
    with pytest.raises(BoundsError, match="NUL"):
        read_bounded(Path("a\0b"))


def test_json_file_that_is_no_object_or_no_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    with pytest.raises(BundleError, match=r"data\.json is missing or is not a file\.$"):
        read_json_object(path, BundleError)
    path.write_text("[1]", encoding="utf-8")
    with pytest.raises(BundleError, match=r"data\.json: expected a JSON object, not a list\.$"):
        read_json_object(path, BundleError)
    path.unlink()
    os.mkfifo(path)  # opening it would block
    with pytest.raises(BundleError, match="is not a file"):
        read_json_object(path, BundleError)
