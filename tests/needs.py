"""What some tests need and a machine may lack. Such a test is skipped, with what to install."""

import pytest

from manyheads.decode.native import compilation

needs_compiler = pytest.mark.skipif(
    compilation.locate_compiler() is None,
    reason="There is no C compiler for the native engine: install gcc",
)
