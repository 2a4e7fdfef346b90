"""Finding the native engine's library: prebuilt, cached or compiled; and every variant gives the same tokens."""

import ctypes
import errno
import logging
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from filelock import FileLock

from manyheads.decode import DecodeSettings, EngineSelector, TorchEngine
from manyheads.decode.native import compilation, loading
from manyheads.decode.native.native_engine import NativeEngine
from manyheads.errors import EngineError
from manyheads.model import Transformer

from decode.conftest import Messages
from decode.test_native import SEARCHES, SPECIAL_TOKENS, VARIANTS, make_model, make_sources
from needs import needs_compiler

is_x86_64 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the variants are those of x86-64")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(loading.LIBRARY_VARIABLE, raising=False)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty cache, and no prebuilt libraries."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(compilation, "PREBUILT", tmp_path / "compilation")
    return tmp_path / "cache" / "manyheads" / "native"


@pytest.fixture(scope="module")
def variants(shared_folder: Path) -> Path:
    """Every variant of this architecture, compiled as for a wheel, once for all processes of the tests."""
    folder = shared_folder / f"variants-{compilation.source_hash()}"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            unfinished = folder.with_name(f"{folder.name}-unfinished")
            unfinished.mkdir(exist_ok=True)
            made, errors = compilation.compile_variants(loading.find_compiler(), unfinished)
            assert errors == []
            assert len(made) == len(compilation.VARIANTS[os.uname().machine])
            unfinished.rename(folder)
    return folder


def _forbid_compilers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run(*_: object, **__: object) -> None:
        raise AssertionError("A process was started.")

    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    monkeypatch.setattr(subprocess, "run", run)


def _select(selector: EngineSelector, model: Transformer, settings: DecodeSettings) -> str:
    return selector.select(model, SPECIAL_TOKENS, settings).name


def test_asking_for_native_without_a_compiler_is_reported_once(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch, messages: Messages
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    selector, model = EngineSelector("native"), make_model()
    for _ in range(2):
        assert _select(selector, model, SEARCHES["beam"]) == "torch"
    assert messages() == [
        "Engine: torch. The native engine, which decodes at least twice as fast, needs a C compiler for its first use: "
        'CC = "no-such-compiler" was not found. Install one, such as gcc.'
    ]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [({}, "none of cc, gcc, clang was found. Install one"), ({"scores": "cosine"}, 'support model.scores = "cosine"')],
)
def test_auto_reports_a_slower_engine_once_and_only_for_many_texts(
    settings: dict[str, str],
    reason: str,
    empty_cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    messages: Messages,
) -> None:
    _forbid_compilers(monkeypatch, tmp_path)
    selector, model = EngineSelector(), make_model(**settings)
    for n_texts in (1, 4998):
        assert selector.select(model, SPECIAL_TOKENS, SEARCHES["beam"], n_texts).name == "torch"
    assert messages() == []
    assert reason in (selector.fallback or "")
    for _ in range(2):
        assert _select(selector, model, SEARCHES["beam"]) == "torch"
    (line,) = messages()
    assert line.startswith("Engine: torch. The native engine")
    assert reason in line


def test_a_silent_selector_logs_nothing(empty_cache: Path, monkeypatch: pytest.MonkeyPatch, messages: Messages) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    selector = EngineSelector("native", is_silent=True)
    assert _select(selector, make_model(), SEARCHES["beam"]) == "torch"
    assert messages() == []
    assert "no-such-compiler" in (selector.fallback or "")


@needs_compiler
def test_auto_reports_an_unsupported_search_once_and_only_for_many_texts(messages: Messages) -> None:
    selector, model, sampling = EngineSelector(), make_model(), DecodeSettings(method="sample")
    assert _select(selector, model, sampling) == "torch"
    assert messages() == []
    for _ in range(2):
        assert selector.select(model, SPECIAL_TOKENS, sampling, 5000).name == "torch"
    assert messages() == ["Engine: torch. The native engine does not support sampling."]


def test_asking_for_torch_reports_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="manyheads"):
        assert _select(EngineSelector("torch"), make_model(), DecodeSettings(method="sample")) == "torch"
    assert caplog.records == []


def test_a_compiler_error_is_quoted(empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'engine.c:1: error: no luck today' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(EngineError, match="no luck today"):
        loading.library()
    compiler.write_text("#!/bin/sh\nexit 7\n")
    with pytest.raises(EngineError, match="it exited with code 7 without a message"):
        loading.library()
    assert list(empty_cache.iterdir()) == []


def test_cc_may_have_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "my tools"
    folder.mkdir()
    for program in (folder / "cc", folder / "cc -x"):
        program.write_text('#!/bin/sh\nprintf "error: %s\\n" "$*" >&2\nexit 1\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    found = {
        "cc -m64": ("cc", "-m64"),
        "  cc  -D'A B=1' ": ("cc", "-DA B=1"),
        f"'{folder}/cc' -O1": ("cc", "-O1"),
        f"{folder}/cc": ("cc",),  # a path with spaces and without quotes
        "cc -x": ("cc -x",),
        "": ("cc",),
    }
    for named, (name, *arguments) in found.items():
        monkeypatch.setenv("CC", named)
        assert compilation.locate_compiler() == (str(folder / name), *arguments)
    monkeypatch.setenv("CC", "cc -m64")
    error = compilation.compile_library(loading.find_compiler(), ("-O3",), tmp_path / "engine.so")
    assert error.startswith("error: -m64 -O3 -std=gnu11")
    assert f"-o {tmp_path}/" in error  # a file in another folder could not be renamed to its final name
    for missing in ("none -m64", "cc 'unbalanced", "'' -m64"):
        monkeypatch.setenv("CC", missing)
        with pytest.raises(EngineError, match=f'CC = "{missing}" was not found'):
            loading.find_compiler()


def test_a_compiler_that_does_not_finish_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "_TIMEOUT", 0.2)
    error = compilation.compile_library(("/bin/sh", "-c", "exec yes"), ("-O3",), tmp_path / "engine.so")
    assert error == "it did not finish within 0.2 seconds."
    assert list(tmp_path.iterdir()) == []


@needs_compiler
def test_a_cached_library_loads_without_a_compiler(
    empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="manyheads"):
        loading.library()
        assert [path.suffix for path in empty_cache.iterdir()] == [".so"]
        assert "This is done once" in caplog.text
        _forbid_compilers(monkeypatch, tmp_path)
        assert loading.library().mh_lanes() > 0
    assert len(caplog.records) == 1


def test_other_sources_make_another_library(empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = compilation.source_hash()
    for path in compilation.SOURCE.parent.glob("*.[ch]"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(compilation, "SOURCE", tmp_path / "engine.c")
    assert compilation.source_hash() == before
    (tmp_path / "layers.c").write_text("/* changed */\n")
    assert compilation.source_hash() != before


def test_a_cache_that_others_can_write_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "manyheads" / "native"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert loading._cache_folder() != folder
    folder.chmod(0o700)
    assert loading._cache_folder() == folder


@needs_compiler
def test_compiling_without_a_cache_says_that_it_is_repeated(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch, messages: Messages
) -> None:
    empty_cache.parent.parent.write_text("a file, in which nobody can make a folder")
    monkeypatch.setattr(compilation, "NATIVE_FLAGS", (("-O0",),))
    assert loading.library().mh_lanes() > 0
    (line,) = messages()
    assert line.endswith(
        f"Every command will do so: {empty_cache} is not a folder that only you can write to. Set XDG_CACHE_HOME."
    )


def test_without_any_writable_folder_torch_decodes(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch, messages: Messages
) -> None:
    def refuse(**options: str) -> None:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    empty_cache.parent.parent.write_text("a file, in which nobody can make a folder")
    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuse)
    loading._temporary_folder.cache_clear()
    assert _select(EngineSelector("native"), make_model(), SEARCHES["beam"]) == "torch"
    (line,) = messages()
    assert "has no folder to be compiled in: [Errno 2] No usable temporary directory found. Set XDG" in line


def test_a_cached_library_that_is_damaged_is_named(empty_cache: Path) -> None:
    path = loading._cache_folder() / f"engine-{loading._fingerprint()}.so"
    path.write_text("not a library")
    with pytest.raises(EngineError, match=f"{path} does not load"):
        loading.library()


@needs_compiler
def test_a_prebuilt_library_loads_without_a_compiler(
    empty_cache: Path, variants: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compilation, "PREBUILT", variants)
    _forbid_compilers(monkeypatch, tmp_path)
    best = compilation.runnable_variants()[0]
    assert Path(loading.library()._name) == variants / compilation.prebuilt_name(best)
    assert not empty_cache.exists()


@is_x86_64
def test_the_processor_chooses_the_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {
        "x86-64-v2": compilation._V2,
        "x86-64-v3": compilation._V3,
        "x86-64-v3-vnni": compilation._V3 | {"avx_vnni"},
        "x86-64-v4": compilation._V4 | {"avx_vnni"},
        "x86-64-v4-vnni": compilation._V4 | {"avx512_vnni"},
    }
    for name, features in expected.items():
        monkeypatch.setattr(compilation, "cpu_features", lambda features=features: features)
        assert compilation.runnable_variants()[0].name == name
    monkeypatch.setattr(compilation, "cpu_features", lambda: frozenset({"sse2"}))
    assert compilation.runnable_variants() == []


@needs_compiler
def test_unusable_prebuilt_libraries_are_skipped(
    empty_cache: Path, variants: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library of other sources is skipped by its name, a library that does not load after an attempt."""
    folder = tmp_path / "compilation"
    folder.mkdir()
    first, *others = compilation.runnable_variants()
    (folder / compilation.prebuilt_name(first)).write_text("linked with another C library")
    (folder / f"engine-{'0' * 16}-{first.name}.so").write_bytes(b"of other sources")
    assert loading._load_prebuilt() is None
    if others:
        name = compilation.prebuilt_name(others[0])
        (folder / name).write_bytes((variants / name).read_bytes())
        found = loading._load_prebuilt()
        assert found is not None
        assert Path(found._name) == folder / name


def _variants_of_this_processor(variants: Path) -> dict[str, ctypes.CDLL]:
    return {
        variant.name: ctypes.CDLL(str(variants / compilation.prebuilt_name(variant)))
        for variant in compilation.runnable_variants()
    }


@is_x86_64
@needs_compiler
def test_every_variant_generates_the_same_tokens(variants: Path, tmp_path: Path) -> None:
    """Float32 is compared with the torch engine, int8 with the first variant: sums of bytes are exact."""
    found = _variants_of_this_processor(variants)
    # The one compiled on first use, and the most portable one.
    for name, flags in {"native": compilation.NATIVE_FLAGS[0], "baseline": ("-O2",)}.items():
        path = tmp_path / f"{name}.so"
        assert compilation.compile_library(loading.find_compiler(), flags, path) == ""
        found[name] = ctypes.CDLL(str(path))
    sources = make_sources(40)
    for settings in ({}, VARIANTS["odd sizes"], VARIANTS["swiglu"]):
        model = make_model(**settings)
        for search in (SEARCHES["greedy"], SEARCHES["n-best"]):
            expected = _ids(TorchEngine(model, SPECIAL_TOKENS), sources, search)
            in_bytes = []
            for name, library in found.items():
                assert _ids(NativeEngine(model, SPECIAL_TOKENS, library), sources, search) == expected, name
                in_bytes.append(_ids(NativeEngine(model, SPECIAL_TOKENS, library, is_int8=True), sources, search))
            assert all(ids == in_bytes[0] for ids in in_bytes)


def _ids(
    engine: NativeEngine | TorchEngine, sources: list[list[int]], search: DecodeSettings
) -> list[list[tuple[int, ...]]]:
    return [[one.ids for one in own] for own in engine.generate(sources, search, range(len(sources)))]


@is_x86_64
@needs_compiler
def test_variants_use_the_instructions_they_are_named_for(variants: Path) -> None:
    lanes = {"x86-64-v2": 4, "x86-64-v3": 8, "x86-64-v4": 16}
    for name, library in _variants_of_this_processor(variants).items():
        level = name.removesuffix("-vnni")
        assert (library.mh_lanes(), library.mh_has_vnni()) == (lanes[level], int(name != level))


@needs_compiler
def test_the_sources_compile_without_a_warning(tmp_path: Path) -> None:
    for macro in ("-DNDEBUG", "-DMH_TEST_ALLOCATION"):
        command = [*loading.find_compiler(), "-std=gnu11", "-Wall", "-Wextra", "-Werror=vla", "-O2", macro]
        command += ["-c", str(compilation.SOURCE), "-o", str(tmp_path / "engine.o")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
