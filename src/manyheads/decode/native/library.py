"""Building the native engine: one C file, compiled once for this machine by the compiler it has."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from manyheads.errors import EngineError

SOURCE = Path(__file__).with_name("engine.c")
_COMPILERS = ("cc", "gcc", "clang")
# What the compiler may do for the processor at hand; the first set of flags that it takes is used.
_FLAGS = (("-O3", "-march=native"), ("-O3", "-mcpu=native"), ("-O3",))
_MORE_FLAGS = ("-std=gnu11", "-shared", "-fPIC", "-fno-math-errno")


def library(tell: Callable[[str], None] = lambda line: None) -> ctypes.CDLL:
    """The compiled engine, from the cache where it was built before."""
    if sys.platform == "win32":
        raise EngineError("The native engine is not built on Windows.")
    compiler = find_compiler()
    path = _cache_folder() / f"engine-{_fingerprint(compiler)}.so"
    if not path.exists():
        _build(compiler, path)
        tell(f"Built the native engine for this processor by {compiler}; that is done once.")
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise EngineError(f"The native engine {path} does not load: {error}. Remove it; it is built anew.") from None


def find_compiler() -> str:
    """The C compiler: what CC names, or one of the usual names."""
    named = os.environ.get("CC", "")
    for name in (named,) if named else _COMPILERS:
        if found := shutil.which(name):
            return found
    given = f'CC = "{named}", which is not there' if named else f"none of {', '.join(_COMPILERS)} is there"
    raise EngineError(f"The native engine needs a C compiler to be built once: {given}. Install one, such as gcc.")


def _cache_folder() -> Path:
    """Where what was built is kept: ours alone, for a library that another could write would run as us."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "manyheads" / "native"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.stat()
        if status.st_uid == os.getuid() and not status.st_mode & 0o022 and os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return _temporary_folder()


@cache
def _temporary_folder() -> Path:
    """For this process alone, where no other place can be trusted."""
    made = tempfile.TemporaryDirectory(prefix="manyheads-native-")
    _KEPT.append(made)
    return Path(made.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends


def _fingerprint(compiler: str) -> str:
    """Of all that makes one build differ from another: the source, the flags, the compiler, the processor."""
    told = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout
    parts = (SOURCE.read_text(encoding="utf-8"), repr(_FLAGS), repr(_MORE_FLAGS), compiler, told, _processor())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _processor() -> str:
    """What this processor can do, so that a home folder shared by two machines keeps a build for each."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return f"{sys.platform} {os.uname().machine}"
    told = [line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))]
    return "\n".join(dict.fromkeys(told)) + os.uname().machine


def _build(compiler: str, path: Path) -> None:
    """Compile beside the place and move there, so that nobody ever loads half a library."""
    said = ""
    for flags in _FLAGS:
        handle, part = tempfile.mkstemp(suffix=".part", dir=path.parent)
        os.close(handle)
        command = [compiler, *flags, *_MORE_FLAGS, "-o", part, str(SOURCE), "-lm"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            Path(part).unlink()
            raise EngineError(f"The native engine could not be built: {compiler}: {error.strerror}.") from None
        if done.returncode == 0:
            Path(part).replace(path)
            return
        Path(part).unlink()
        said = said or next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200])
    raise EngineError(f"The native engine could not be built by {compiler}: {said or 'it failed and said nothing.'}")
