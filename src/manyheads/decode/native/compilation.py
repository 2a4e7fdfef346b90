"""The compiled libraries of the native engine: sources, variants per processor, and how the compiler is called.

This file imports the standard library only: hatch_build.py loads it by its path while it builds a wheel.
"""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("engine.c")  # includes the other sources
PREBUILT = Path(__file__).with_name("libraries")  # of a wheel; a source tree has no such folder
COMPILERS = ("cc", "gcc", "clang")
_TIMEOUT = 300  # seconds; compiling takes a few
# For the processor that compiles; the first set of flags that the compiler accepts is used.
NATIVE_FLAGS = (("-O3", "-march=native"), ("-O3", "-mcpu=native"), ("-O3",))
COMMON_FLAGS = ("-std=gnu11", "-shared", "-fPIC", "-fno-math-errno", "-fvisibility=hidden")


@dataclass(frozen=True)
class Variant:
    """One library of a wheel: the compiler flags, and the processor features that it needs."""

    name: str
    flags: tuple[str, ...]
    features: frozenset[str]  # as /proc/cpuinfo names them


_V2 = frozenset({"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"})
_V3 = _V2 | {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}

# Fastest first. No x86-64 level includes the VNNI instructions, which speed up int8: they get their own variants.
VARIANTS: dict[str, tuple[Variant, ...]] = {
    "x86_64": (
        Variant("x86-64-v4-vnni", ("-O3", "-march=x86-64-v4", "-mavx512vnni"), _V4 | {"avx512_vnni"}),
        Variant("x86-64-v4", ("-O3", "-march=x86-64-v4"), _V4),
        Variant("x86-64-v3-vnni", ("-O3", "-march=x86-64-v3", "-mavxvnni"), _V3 | {"avx_vnni"}),
        Variant("x86-64-v3", ("-O3", "-march=x86-64-v3"), _V3),
        Variant("x86-64-v2", ("-O3", "-march=x86-64-v2"), _V2),
    ),
    "aarch64": (Variant("armv8-a", ("-O3", "-march=armv8-a"), frozenset({"asimd"})),),
}


def source_hash() -> str:
    """Identifies the C sources and the flags that every build has; a library of other sources is never loaded."""
    digest = hashlib.sha256(repr(COMMON_FLAGS).encode())
    for path in sorted([*SOURCE.parent.glob("*.c"), *SOURCE.parent.glob("*.h")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def prebuilt_name(variant: Variant) -> str:
    """The file name of a wheel's library."""
    return f"engine-{source_hash()}-{variant.name}.so"


def runnable_variants() -> list[Variant]:
    """The variants that this processor can run, fastest first."""
    if sys.platform != "linux":
        return []
    features = cpu_features()
    return [variant for variant in VARIANTS.get(os.uname().machine, ()) if variant.features <= features]


def cpu_features() -> frozenset[str]:
    """The processor's features; /proc/cpuinfo lists only those that the kernel supports too."""
    for line in _cpu_lines(("flags", "Features")):
        return frozenset(line.partition(":")[2].split())
    return frozenset()


def describe_cpu() -> str:
    """A description of this processor. A home folder shared by two machines caches one library for each."""
    lines = _cpu_lines(("model name", "flags", "Features", "CPU part"))
    return "\n".join([*lines, sys.platform, os.uname().machine])


def _cpu_lines(fields: tuple[str, ...]) -> list[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return list(dict.fromkeys(line for line in lines if line.startswith(fields)))


def locate_compiler() -> tuple[str, ...] | None:
    """The command of the C compiler: that of CC, which may have arguments, or else the first of `COMPILERS` found."""
    named = os.environ.get("CC", "").strip()
    for program, *arguments in _split(named) if named else [[name] for name in COMPILERS]:
        if path := shutil.which(program):
            return (path, *arguments)
    return None


def _split(command: str) -> list[list[str]]:
    """The ways to read CC: as the path of a program, which may contain spaces, and as a program with arguments."""
    try:
        return [[command], shlex.split(command)]
    except ValueError:  # a quote without its end
        return [[command]]


def compile_library(compiler: Sequence[str], flags: tuple[str, ...], path: Path) -> str:
    """Compile into `path`; return the first error of the compiler, or an empty string.

    The library is compiled to a temporary file and renamed, so that no process ever loads an incomplete one.
    """
    try:
        handle, part = tempfile.mkstemp(suffix=".part", dir=path.parent)
    except OSError as error:
        return f"{path.parent}: {error.strerror}."
    os.close(handle)
    command = [*compiler, *flags, *COMMON_FLAGS, "-o", part, str(SOURCE), "-lm"]
    try:
        done = subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, errors="replace", check=False, timeout=_TIMEOUT
        )
        if done.returncode == 0:
            Path(part).replace(path)
            return ""
    except OSError as error:
        return f"{error.strerror}."
    except subprocess.TimeoutExpired:
        return f"it did not finish within {_TIMEOUT} seconds."
    finally:
        Path(part).unlink(missing_ok=True)
    first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200])
    return first or f"it exited with code {done.returncode} without a message."


def compile_variants(compiler: Sequence[str], folder: Path) -> tuple[list[Path], list[str]]:
    """Every variant of this machine's architecture that the compiler can build, and the errors of the others."""
    paths, errors = [], []
    for variant in VARIANTS.get(os.uname().machine, ()) if sys.platform == "linux" else ():
        path = folder / prebuilt_name(variant)
        if error := compile_library(compiler, variant.flags, path):
            errors.append(f"{variant.name}: {error}")
        else:
            path.chmod(0o755)
            paths.append(path)
    return paths, errors
