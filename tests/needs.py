"""What some tests need and a machine may lack. Such a test is skipped, with what to install."""

import subprocess

import pytest

from manyheads.decode.native import compilation


def _compiles() -> bool:
    """Whether there is a C compiler that finds the headers of the C library: Debian has them in another package."""
    compiler = compilation.locate_compiler()
    if compiler is None:
        return False
    command = [*compiler, "-x", "c", "-fsyntax-only", "-"]
    return subprocess.run(command, input=b"#include <math.h>\n", capture_output=True, check=False).returncode == 0


needs_compiler = pytest.mark.skipif(
    not _compiles(), reason="There is no C compiler with its headers for the native engine: install gcc and libc6-dev"
)
