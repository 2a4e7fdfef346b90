"""API keys and rate limits."""

from pathlib import Path

import pytest

from manyheads.errors import ServeError
from manyheads.serve.service.access import Access, read_keys
from manyheads.serve.service.problems import ProblemError

KEY, OTHER = "k" * 16, "o" * 20


def test_keys_are_read_from_a_file_with_and_without_names(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"# ours\nreporting of every month: {KEY}  # monthly\n\n{OTHER}\n")
    assert read_keys(path, {}) == {KEY: "reporting of every month", OTHER: "key4"}


def test_keys_are_read_from_the_environment_unless_there_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(OTHER)
    environment = {"MANYHEADS_API_KEYS": f"a:{KEY},{OTHER}"}
    assert read_keys(None, environment) == {KEY: "a", OTHER: "key2"}
    assert read_keys(path, environment) == {OTHER: "key1"}
    assert read_keys(None, {}) == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: short", "line 1: a key must have at least 16 printable ASCII"),
        (b"\n" + "密".encode() * 20, "line 2: a key must have"),
        (b"# nothing", "has no API key"),
        (b"first-half-of-the#key-0123456789", "line 1: a key has no : or #"),
        (b"first-half-of-the:second-half-of-it", "line 1: a key has no : or #"),
        (b"a: first-half-of-the:key-0123456789", "line 1: a key has no : or #"),
        (b"a: first-half-of-the: key-0123456789", "line 1: a key has no : or #"),
        (b"\xff" * 20, "it is not UTF-8"),
    ],
)
def test_faulty_files_of_keys_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "keys"
    path.write_bytes(content)
    with pytest.raises(ServeError, match=message):
        read_keys(path, {})


def test_a_missing_file_of_keys_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match="cannot be read: No such file"):
        read_keys(tmp_path / "none", {})


def test_a_key_has_a_name_and_others_are_refused() -> None:
    access = Access({KEY: "a", OTHER: "b"})
    assert access.name_of(OTHER) == "b"
    for wrong in (None, "", KEY[:-1], KEY + "x", "密钥"):
        with pytest.raises(ProblemError, match="API key") as caught:
            access.name_of(wrong)
        assert (caught.value.status, caught.value.headers) == (401, {"WWW-Authenticate": "Bearer"})
    assert Access({}).name_of(None) == ""


def test_a_client_is_limited_to_its_rate_and_others_are_not() -> None:
    now = 0.0
    access = Access({}, rate=60, clock=lambda: now)
    for _ in range(60):
        access.count("a")
    with pytest.raises(ProblemError, match="Too many requests: 60 a minute are allowed") as caught:
        access.count("a")
    assert (caught.value.status, caught.value.headers) == (429, {"Retry-After": "1"})
    access.count("b")
    now = 2.0
    access.count("a")
    access.count("a")
    with pytest.raises(ProblemError):
        access.count("a")


def test_a_large_request_counts_as_several_and_is_paid_for_afterwards() -> None:
    now = 0.0
    access = Access({}, rate=60, clock=lambda: now)
    access.count("a")
    access.charge("a", 4000)  # as one: it has been counted
    for _ in range(59):
        access.count("a")
    with pytest.raises(ProblemError):
        access.count("a")
    now = 60.0
    access.count("a")
    access.charge("a", 400_000)  # one hundred in all, of which it had sixty
    with pytest.raises(ProblemError) as caught:
        access.count("a")
    assert caught.value.headers == {"Retry-After": "41"}
    access.count("b")
    now = 101.0
    access.count("a")
    Access({}).charge("a", 1e9)  # without a rate, nothing is counted
