import hashlib
import json
import struct
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from manyheads.errors import LensError
from manyheads.lens import Trace, read_trace, trace, write_trace

from lens.makers import ANSWER, KINDS, TEXTS, WRITERS, task_of


def traced(kind: str = "seq2seq") -> Trace:
    return trace(task_of(kind), TEXTS[kind], ANSWER if kind in WRITERS else None)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_trace(traced(), tmp_path / "trace.bin")
    return tmp_path / "trace.bin"


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_written_is_read_within_half_a_step(kind: str, tmp_path: Path) -> None:
    found = traced(kind)
    write_trace(found, tmp_path / "trace.bin")
    stored = read_trace(tmp_path / "trace.bin")
    stored.check()
    assert stored.model_input == found.model_input
    assert stored.heads == found.heads
    for head in found.heads:
        for kind_of_map in ("weights", "norms"):
            exact = getattr(found, kind_of_map)(head)
            error = stored.error(kind_of_map, head)
            read = getattr(stored, kind_of_map)(head)
            assert read.shape == exact.shape
            # Half a step, and what float32 cannot tell apart.
            assert (read - exact).abs().max() <= error + 1e-6 * exact.max()
            assert error <= float(exact.max()) / 510 * (1 + 1e-6)
        assert stored.error("weights", head) <= 1 / 510 * (1 + 1e-6)


def test_a_head_that_gives_nothing_is_stored_as_zeros(tmp_path: Path) -> None:
    found = traced()
    silent = replace(found["encoder.0.self"], v=torch.zeros_like(found["encoder.0.self"].v))
    write_trace(replace(found, attentions={**found.attentions, silent.name: silent}), tmp_path / "trace.bin")
    stored = read_trace(tmp_path / "trace.bin")
    assert (stored.norms("encoder.0.self/1") == 0).all()
    assert stored.error("norms", "encoder.0.self/1") == 0.0


def test_the_form_is_the_one_that_is_described(file: Path) -> None:
    """Read as a page would, by nothing but what the module says of the form."""
    content = file.read_bytes()
    assert content[:8] == b"MHTRACE\n"
    version, n = struct.unpack_from("<II", content, 8)
    assert version == 1
    assert hashlib.sha256(content[48 : 48 + n]).digest() == content[16:48]
    header = json.loads(content[48 : 48 + n])
    assert len(content) == 48 + n + header["size"]
    found = traced()
    for attention in header["attentions"]:
        queries, keys = header[attention["queries"]], header[attention["keys"]]
        for number, entry in enumerate(attention["weights"]):
            start = 48 + n + entry["offset"]
            map_ = content[start : start + len(queries) * len(keys)]
            exact = found[attention["name"]].weights[number].flatten().tolist()
            assert all(
                abs(byte * entry["step"] - weight) <= entry["step"] / 2 + 1e-6
                for byte, weight in zip(map_, exact, strict=True)
            )
    assert header["source"][0] == ["▁the", found.model_input.source[0].id, 0, 3]


def test_one_head_is_read_without_the_others(file: Path) -> None:
    stored = read_trace(file)
    content = bytearray(file.read_bytes())
    first = stored.weights("encoder.0.self/0")
    content[-1] ^= 1  # of the last head
    file.write_bytes(content)
    stored = read_trace(file)
    assert torch.equal(stored.weights("encoder.0.self/0"), first)
    with pytest.raises(LensError) as error:
        stored.norms("decoder.1.cross/3")
    told = "is damaged: the norms of decoder.1.cross/3 are not what was written. Copy it again, or trace the text anew."
    assert str(error.value) == f"{file} {told}"
    with pytest.raises(LensError, match="is damaged"):
        stored.check()


def test_a_flipped_bit_anywhere_is_noticed(file: Path) -> None:
    content = file.read_bytes()
    for place in range(0, len(content), 149):
        for bit in (0, 7):
            flipped = bytearray(content)
            flipped[place] ^= 1 << bit
            file.write_bytes(flipped)
            with pytest.raises(LensError):
                read_trace(file).check()


def test_a_file_that_ends_early_is_noticed_at_once(file: Path) -> None:
    content = file.read_bytes()
    for size in (0, 5, 8, 47, 48, 200, len(content) // 2, len(content) - 1):
        file.write_bytes(content[:size])
        with pytest.raises(LensError, match=r"is not a trace|is damaged"):
            read_trace(file)
    file.write_bytes(content + b"!")
    with pytest.raises(LensError, match="it has 1 bytes too many"):
        read_trace(file)


def test_a_file_of_a_newer_version_or_of_another_kind(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[8] = 9
    file.write_bytes(content)
    with pytest.raises(LensError, match=r"made by a newer manyheads \(trace version 9; this one reads up to 1\)"):
        read_trace(file)
    with pytest.raises(LensError, match="cannot be read"):
        read_trace(file.parent / "nowhere")
    header = b'{"text": "no"}'
    start = struct.pack("<8sII32s", b"MHTRACE\n", 1, len(header), hashlib.sha256(header).digest())
    file.write_bytes(start + header)
    with pytest.raises(LensError, match="its header is not as this manyheads writes it: KeyError"):
        read_trace(file)


@pytest.mark.parametrize("head", ["encoder.7.self/0", "encoder.0.self/9"])
def test_a_head_that_does_not_exist(file: Path, head: str) -> None:
    with pytest.raises(LensError, match=f"There is no head {head}"):
        read_trace(file).weights(head)


def test_what_is_not_a_number_is_not_stored(tmp_path: Path) -> None:
    found = traced()
    lost = replace(found["encoder.1.self"], weights=found["encoder.1.self"].weights * torch.nan)
    with pytest.raises(LensError, match=r"What encoder\.1\.self/0 did is not a number"):
        write_trace(replace(found, attentions={**found.attentions, lost.name: lost}), tmp_path / "trace.bin")
    assert not list(tmp_path.iterdir())
