import hashlib
import json
import struct
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from manyheads.errors import LensError
from manyheads.lens import Trace, read_trace, trace, write_trace
from manyheads.lens.trace_file import VERSION

from lens.makers import ANSWER, KINDS, TEXTS, WRITERS, task_of


def traced(kind: str = "seq2seq") -> Trace:
    return trace(task_of(kind), TEXTS[kind], ANSWER if kind in WRITERS else None)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_trace(traced(), tmp_path / "trace.bin")
    return tmp_path / "trace.bin"


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip_is_exact_to_half_a_step(kind: str, tmp_path: Path) -> None:
    recorded = traced(kind)
    write_trace(recorded, tmp_path / "trace.bin")
    stored = read_trace(tmp_path / "trace.bin")
    stored.check()
    assert stored.model_input == recorded.model_input
    assert stored.heads == recorded.heads
    for head in recorded.heads:
        for kind_of_map in ("weights", "norms"):
            exact = getattr(recorded, kind_of_map)(head)
            error = stored.error(kind_of_map, head)
            read = getattr(stored, kind_of_map)(head)
            assert read.shape == exact.shape
            # Half a step, and the rounding of float32.
            assert (read - exact).abs().max() <= error + 1e-6 * exact.max()
            assert error <= float(exact.max()) / 510 * (1 + 1e-6)
        assert stored.error("weights", head) <= 1 / 510 * (1 + 1e-6)


def test_head_without_output_is_stored_as_zeros(tmp_path: Path) -> None:
    recorded = traced()
    zeroed = replace(recorded["encoder.0.self"], v=torch.zeros_like(recorded["encoder.0.self"].v))
    write_trace(replace(recorded, attentions={**recorded.attentions, zeroed.name: zeroed}), tmp_path / "trace.bin")
    stored = read_trace(tmp_path / "trace.bin")
    assert (stored.norms("encoder.0.self/1") == 0).all()
    assert stored.error("norms", "encoder.0.self/1") == 0.0


def test_format_is_as_documented(file: Path) -> None:
    """Read the file by the module's description of the format alone."""
    content = file.read_bytes()
    assert content[:8] == b"MHTRACE\n"
    version, n = struct.unpack_from("<II", content, 8)
    assert version == VERSION == 2
    assert hashlib.sha256(content[48 : 48 + n]).digest() == content[16:48]
    header = json.loads(content[48 : 48 + n])
    assert len(content) == 48 + n + header["n_bytes"]
    recorded = traced()
    for attention in header["attentions"]:
        queries, keys = header[attention["queries"]], header[attention["keys"]]
        for number, entry in enumerate(attention["weights"]):
            start = 48 + n + entry["offset"]
            map_ = content[start : start + len(queries) * len(keys)]
            exact = recorded[attention["name"]].weights[number].flatten().tolist()
            assert all(
                abs(byte * entry["step"] - weight) <= entry["step"] / 2 + 1e-6
                for byte, weight in zip(map_, exact, strict=True)
            )
    assert header["source"][0] == ["▁the", recorded.model_input.source[0].id, 0, 3]


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
    message = "the norms of decoder.1.cross/3 do not match their checksum. Copy it again, or trace the text again."
    assert str(error.value) == f"{file} is damaged: {message}"
    with pytest.raises(LensError, match="is damaged"):
        stored.check()


def test_flipped_bit_is_detected(file: Path) -> None:
    content = file.read_bytes()
    for position in range(0, len(content), 149):
        for bit in (0, 7):
            flipped = bytearray(content)
            flipped[position] ^= 1 << bit
            file.write_bytes(flipped)
            with pytest.raises(LensError):
                read_trace(file).check()


def test_truncated_file_is_detected(file: Path) -> None:
    content = file.read_bytes()
    for size in (0, 5, 8, 47, 48, 200, len(content) // 2, len(content) - 1):
        file.write_bytes(content[:size])
        with pytest.raises(LensError, match=r"is not a trace file|is damaged"):
            read_trace(file)
    file.write_bytes(content + b"!")
    with pytest.raises(LensError, match="1 extra bytes"):
        read_trace(file)


def test_other_versions_and_invalid_files_are_refused(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[8] = 9
    file.write_bytes(content)
    with pytest.raises(LensError, match=r"made by a newer manyheads \(trace version 9; this one reads version 2\)"):
        read_trace(file)
    content[8] = 1
    file.write_bytes(content)
    with pytest.raises(LensError) as error:
        read_trace(file)
    message = "made by an older manyheads (trace version 1; this one reads version 2). Trace the text again."
    assert str(error.value) == f"{file}: {message}"
    with pytest.raises(LensError, match="cannot be read"):
        read_trace(file.parent / "nowhere")
    header = b'{"text": "no"}'
    start = struct.pack("<8sII32s", b"MHTRACE\n", VERSION, len(header), hashlib.sha256(header).digest())
    file.write_bytes(start + header)
    with pytest.raises(LensError, match="the header of this trace file is invalid: KeyError"):
        read_trace(file)


@pytest.mark.parametrize("head", ["encoder.7.self/0", "encoder.0.self/9"])
def test_unknown_head_is_refused(file: Path, head: str) -> None:
    with pytest.raises(LensError, match=f"There is no head {head}"):
        read_trace(file).weights(head)


def test_nan_is_not_stored(tmp_path: Path) -> None:
    recorded = traced()
    nan = replace(recorded["encoder.1.self"], weights=recorded["encoder.1.self"].weights * torch.nan)
    with pytest.raises(LensError, match=r"The attention of encoder\.1\.self/0 contains NaN"):
        write_trace(replace(recorded, attentions={**recorded.attentions, nan.name: nan}), tmp_path / "trace.bin")
    assert not list(tmp_path.iterdir())
