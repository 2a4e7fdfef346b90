"""The file or notebook that a learner starts from: the statement, the signature and no solution."""

import json

from manyheads.learn.exercise import Exercise
from manyheads.messages import _


def make_file(exercise: Exercise) -> str:
    """A Python file."""
    return f"{_mark(exercise)}\n{_header(exercise)}\n\n\n{_function(exercise)}"


def make_notebook(exercise: Exercise) -> str:
    """A Jupyter notebook with the same content."""
    statement = f"# {exercise.title}\n\n{exercise.statement}\n"
    code = f"{_mark(exercise)}\n{_header(exercise)}\n\n\n{_function(exercise)}"
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": statement.splitlines(keepends=True)},
        {
            "cell_type": "code",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": code.splitlines(keepends=True),
        },
    ]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    for number, cell in enumerate(cells):
        cell["id"] = f"{exercise.name}-{number}"
    notebook = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _mark(exercise: Exercise) -> str:
    return f"# manyheads learn: {exercise.name}"


def _header(exercise: Exercise) -> str:
    lines = [f"# {_('Check it with: manyheads learn check FILE')}", "import numpy as np"]
    lines[0] += f"   {_('(numpy or torch: import what you use)')}"
    if exercise.masks or exercise.returns_mask:
        lines += ["", f'MASK = "visible"  # {_("what True means; also: hidden, or additive for 0 and -inf")}']
    return "\n".join(lines)


def _function(exercise: Exercise) -> str:
    shapes = "\n".join(f"    {name}: {shape}" for name, shape in exercise.shapes.items())
    statement = "\n".join(f"    {line}".rstrip() for line in str(exercise.statement).splitlines())
    return (
        f"def {exercise.function}({', '.join(exercise.parameters)}):\n"
        f'    """{exercise.title}\n\n{statement}\n\n{shapes}\n    """\n'
        f"    raise NotImplementedError\n"
    )
