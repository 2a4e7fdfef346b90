"""Finding the native engine's library: from the wheel, from the cache, or compiled once for this machine."""

import ctypes
import hashlib
import logging
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from manyheads.decode.native import compilation
from manyheads.errors import EngineError
from manyheads.messages import _
from manyheads.storage import user_cache_folder

LIBRARY_VARIABLE = "MANYHEADS_NATIVE_LIBRARY"  # path of the library to load instead, such as a build with sanitizers

logger = logging.getLogger(__name__)


def library() -> ctypes.CDLL:
    """Return the compiled engine. A compiler is needed only if there is neither a prebuilt nor a cached library."""
    if sys.platform == "win32":
        raise EngineError(_("The native engine does not run on Windows."))
    if named := os.environ.get(LIBRARY_VARIABLE):
        return _load(Path(named))
    if (prebuilt := _load_prebuilt()) is not None:
        return prebuilt
    path = _cache_folder() / f"engine-{_fingerprint()}.so"
    if not path.exists() and not os.access(path.parent, os.W_OK):
        path = _temporary_folder() / path.name
    if not path.exists():
        compiler = find_compiler()
        _build(compiler, path)
        cache = user_cache_folder("native")
        command = shlex.join(compiler)
        message = _("Compiled the native engine for this processor with {command}. This is done once.", command=command)
        if path.parent != cache:
            message = _(
                "Compiled the native engine for this processor with {command}. Every command will do so: {cache} is "
                "not a folder that only you can write to. Set XDG_CACHE_HOME.",
                command=command,
                cache=cache,
            )
        logger.info("%s", message)
    return _load(path)


def find_compiler() -> tuple[str, ...]:
    """The command of the C compiler; raises `EngineError` if there is none."""
    if compiler := compilation.locate_compiler():
        return compiler
    named = os.environ.get("CC", "").strip()
    missing = (
        _('CC = "{name}" was not found', name=named)
        if named
        else _("none of {names} was found", names=", ".join(compilation.COMPILERS))
    )
    raise EngineError(
        _(
            "The native engine, which decodes at least twice as fast, needs a C compiler for its first use: "
            "{missing}. Install one, such as gcc.",
            missing=missing,
        )
    )


def _load(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise EngineError(
            _(
                "The native engine {path} does not load: {reason}. Delete the file and try again.",
                path=path,
                reason=error,
            )
        ) from None


def _load_prebuilt() -> ctypes.CDLL | None:
    """The fastest library in the wheel that this processor can run; None if there is none or it does not load."""
    if not compilation.PREBUILT.is_dir():
        return None
    for variant in compilation.runnable_variants():
        path = compilation.PREBUILT / compilation.prebuilt_name(variant)
        if not path.exists():
            continue
        try:
            return ctypes.CDLL(str(path))
        except OSError as error:  # such as a C library other than the one it was linked with
            logger.info("%s", _("The prebuilt native engine {path} does not load: {reason}.", path=path, reason=error))
    return None


def _cache_folder() -> Path:
    """The folder for compiled libraries. Only this user may write to it: a library runs with the user's rights."""
    folder = user_cache_folder("native")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.stat()
        if status.st_uid == os.getuid() and not status.st_mode & 0o022 and os.access(folder, os.R_OK | os.X_OK):
            return folder
    except OSError:
        pass
    return _temporary_folder()


@cache
def _temporary_folder() -> Path:
    """A folder of this process, used if the cache is not writable or others may write to it."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="manyheads-native-")
    except OSError as error:
        raise EngineError(
            _("The native engine has no folder to be compiled in: {reason}. Set XDG_CACHE_HOME.", reason=error)
        ) from None
    _TEMPORARY.append(folder)
    return Path(folder.name)


_TEMPORARY: list[tempfile.TemporaryDirectory[str]] = []  # deleted when the process ends


def _fingerprint() -> str:
    """Identifies the sources, the flags and the processor. It needs no compiler, so that a cached library loads."""
    parts = (compilation.source_hash(), repr(compilation.NATIVE_FLAGS), compilation.describe_cpu())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _build(compiler: Sequence[str], path: Path) -> None:
    """Compile with the first flags that the compiler accepts."""
    errors = []
    for flags in compilation.NATIVE_FLAGS:
        if not (error := compilation.compile_library(compiler, flags, path)):
            return
        errors.append(error)
    raise EngineError(
        _(
            "The native engine could not be compiled by {compiler}: {reason}",
            compiler=shlex.join(compiler),
            reason=errors[0],
        )
    )
