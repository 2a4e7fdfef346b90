"""The file or notebook that a learner starts from: the statement, the signature and no solution."""

import json
import re

from rich.cells import cell_len

from manyheads.learn.exercise import Exercise
from manyheads.messages import _

_WIDTH = 100  # columns of the statement


def make_file(exercise: Exercise) -> str:
    """A Python file."""
    return f"{_mark(exercise)}\n{_header(exercise)}\n\n\n{_function(exercise)}"


def make_notebook(exercise: Exercise) -> str:
    """A Jupyter notebook with the same content."""
    statement = f"# {exercise.title}\n\n{exercise.statement}\n"
    code = f"%%learn {exercise.name}\n{make_file(exercise)}"
    empty: dict[str, object] = {"metadata": {}, "execution_count": None, "outputs": []}
    cells = [
        {"cell_type": "markdown", "id": "statement", "metadata": {}, "source": statement.splitlines(keepends=True)},
        {"cell_type": "code", "id": "magic", **empty, "source": ["%load_ext manyheads.learn"]},
        {"cell_type": "code", "id": "solution", **empty, "source": code.splitlines(keepends=True)},
    ]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    notebook = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _wrap(text: str) -> list[str]:
    """The text in lines of at most `_WIDTH` columns; a line may end after any Chinese character."""
    joined = re.sub(r"(?<=[\u3000-\uffef])\n|\n(?=[\u3000-\uffef])", "", text).replace("\n", " ")
    lines = [""]
    for part in re.findall(
        r"[\u3000-\uffef][，。、；：！？）”]*|[^\s\u3000-\uffef]+[，。、；：！？）”]*\s?|\s", joined
    ):
        if cell_len(lines[-1] + part.rstrip()) > _WIDTH:
            lines.append("")
        lines[-1] += part
    return [line.rstrip() for line in lines]


def _mark(exercise: Exercise) -> str:
    return f"# manyheads learn: {exercise.name}"


def _header(exercise: Exercise) -> str:
    how = _("Check it with: manyheads learn check FILE")
    arrays = _("(numpy or torch: import what you use)")
    lines = [f"# {how}   {arrays}", "import numpy as np"]
    if exercise.masks or exercise.returns_mask:
        meaning = _("what True means; also: hidden, or additive for 0 and -inf")
        lines += ["", f'MASK = "visible"  # {meaning}']
    return "\n".join(lines)


def _function(exercise: Exercise) -> str:
    shapes = "\n".join(f"    {name}: {shape}" for name, shape in exercise.shapes.items())
    statement = "\n".join(f"    {line}" for line in _wrap(str(exercise.statement)))
    return (
        f"def {exercise.function}({', '.join(exercise.parameters)}):\n"
        f'    """{exercise.title}\n\n{statement}\n\n{shapes}\n    """\n'
        f"    raise NotImplementedError\n"
    )
