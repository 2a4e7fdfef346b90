"""Exercises: write the parts of the Transformer yourself, and an examiner names the bug.

An exercise is a file of texts (`exercises/`) and a reference with switches (`references/`). `examiner` compares what a
learner's file returns with the reference and with its faulty variants; the file itself runs in a child process.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyheads.learn.notebook_cell import Shell


def load_ipython_extension(ipython: "Shell") -> None:
    """Register `%%learn`: IPython calls this for `%load_ext manyheads.learn`."""
    from manyheads.learn.notebook_cell import register

    register(ipython)
