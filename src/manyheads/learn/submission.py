"""A learner's file: Python or a notebook, its exercise, what it imports and which conventions it declares."""

import ast
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from manyheads.bounded_files import BoundsError, parse_json, read_bounded
from manyheads.errors import LearnError
from manyheads.learn.debugging import MARK
from manyheads.learn.exercise import Exercise
from manyheads.messages import _
from manyheads.settings import did_you_mean

MAX_SOURCE = 1_000_000  # bytes
MASK_CONVENTIONS = ("visible", "hidden", "additive")
_MARK = re.compile(r"^#\s*manyheads learn:\s*(\S+)", re.MULTILINE)
_ARRAYS = ("torch", "numpy")
_PACKAGES = (*_ARRAYS, "einops", "scipy")


@dataclass(frozen=True)
class Submission:
    """What a learner wrote for an exercise."""

    path: Path
    source: str
    exercise: str
    function: str
    arrays: list[str]  # the kinds to try: "torch", "numpy"
    imports: list[str]
    mask: str  # what True means in a mask: one of MASK_CONVENTIONS
    line: int  # of the function
    result_line: int  # of its only `return`, else of the function
    cells: tuple[tuple[int, int], ...] = ()  # of a notebook: the first line of each cell, and its number
    is_debugged: bool = False  # a file with a planted fault, which is not to be given away

    def place(self, line: int | None) -> str:
        """A line of the source as a learner finds it: "file.py:7", or the cell of a notebook."""
        line = self.line if line is None else line
        for first, number in reversed(self.cells):
            if line >= first:
                return _("{path}, cell {number}, line {line}", path=self.path, number=number, line=line - first + 1)
        return f"{self.path}:{line}"

    def text_of_line(self, line: int) -> str:
        """A line of the source, without spaces around it."""
        lines = self.source.splitlines()
        return lines[line - 1].strip() if 1 <= line <= len(lines) else ""


def read_submission(path: Path, exercises: dict[str, Exercise], *, name: str | None = None) -> Submission:
    """Read a learner's file; raise LearnError, with the line, if it cannot be checked."""
    source, cells = _read_source(path)
    return make_submission(path, source, exercises, name=name, cells=cells)


def make_submission(
    path: Path,
    source: str,
    exercises: dict[str, Exercise],
    *,
    name: str | None = None,
    cells: tuple[tuple[int, int], ...] = (),
) -> Submission:
    """Find the exercise, the function and the conventions of a source."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        where = Submission(path, source, "", "", [], [], "", 1, 1, cells).place(error.lineno or 1)
        raise LearnError(_("{where}: the syntax is wrong: {reason}.", where=where, reason=error.msg)) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise LearnError(_("{path} cannot be read: {error}.", path=path, error=error)) from None
    exercise = _find_exercise(path, source, tree, exercises, name)
    found = _find_definition(path, tree, exercise)
    _check_signature(path, found, exercise, cells, source)
    returns = [node.lineno for node in ast.walk(found) if isinstance(node, ast.Return)]
    constants = _constants(tree)
    return Submission(
        path=path,
        source=source,
        exercise=exercise.name,
        function=exercise.function,
        arrays=_arrays(path, tree, constants.get("ARRAYS")),
        imports=_imports(tree),
        mask=_mask(path, constants.get("MASK")),
        line=found.lineno,
        result_line=returns[0] if len(returns) == 1 else found.lineno,
        cells=cells,
        is_debugged=MARK.search(source) is not None,
    )


def _read_source(path: Path) -> tuple[str, tuple[tuple[int, int], ...]]:
    try:
        content = read_bounded(path, MAX_SOURCE)
        if path.suffix == ".ipynb":
            return _read_notebook(path, parse_json(content))
        return content.decode("utf-8-sig"), ()
    except UnicodeDecodeError:
        raise LearnError(_("{path} is not UTF-8 text.", path=path)) from None
    except OSError as error:
        raise LearnError(_("{path} cannot be read ({reason}).", path=path, reason=error.strerror)) from None
    except BoundsError as error:
        raise LearnError(_("{path}: {reason}.", path=path, reason=error)) from None


def _read_notebook(path: Path, content: object) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The code cells of a notebook as one source; lines of magics and of the shell are left out."""
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        raise LearnError(_("{path} is not a notebook: it has no cells.", path=path))
    lines: list[str] = []
    starts = []
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        text = cell.get("source", "")
        text = "".join(map(str, text)) if isinstance(text, list) else str(text)
        starts.append((len(lines) + 1, number))
        lines += ["" if line.lstrip().startswith(("%", "!")) else line for line in text.splitlines()]
    return "\n".join(lines) + "\n", tuple(starts)


def _find_exercise(
    path: Path, source: str, tree: ast.Module, exercises: dict[str, Exercise], name: str | None
) -> Exercise:
    """By name, else by the mark of the file, else by the function that it defines."""
    mark = _MARK.search(source)
    name = name or (mark[1] if mark else None)
    if name is not None:
        if name not in exercises:
            raise LearnError(_("There is no exercise {name!r}. {hint}", name=name, hint=did_you_mean(name, exercises)))
        return exercises[name]
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    found = [one for one in exercises.values() if one.function in defined]
    if len(found) == 1:
        return found[0]
    raise LearnError(
        _("{path} does not say which exercise it is for. Begin it with: # manyheads learn: NAME", path=path)
    )


def _find_definition(path: Path, tree: ast.Module, exercise: Exercise) -> ast.FunctionDef:
    for node in reversed(tree.body):
        if isinstance(node, ast.ClassDef) and node.name == exercise.function:
            raise LearnError(
                _(
                    "{path}:{line}: {name} is a class; expected a function.",
                    path=path,
                    line=node.lineno,
                    name=node.name,
                )
            )
        if isinstance(node, ast.FunctionDef) and node.name == exercise.function:
            return node
    for inner in ast.walk(tree):  # inside of `if` or `try`
        if isinstance(inner, ast.FunctionDef) and inner.name == exercise.function:
            return inner
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assigned = [
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    if exercise.function in assigned:  # such as `f = lambda …` or a partial: its signature is seen when it is called
        node = next(
            n for n in tree.body if isinstance(n, ast.Assign) and exercise.function in ast.unparse(n.targets[0])
        )
        made = ast.parse(f"def {exercise.function}(*arguments): pass").body[0]
        assert isinstance(made, ast.FunctionDef)
        made.lineno = node.lineno
        return made
    defined = _("It defines {names}.", names=", ".join(names)) if names else _("It defines no function.")
    raise LearnError(
        _("{path}: there is no function {name}. {defined}", path=path, name=exercise.function, defined=defined)
    )


def _check_signature(
    path: Path, found: ast.FunctionDef, exercise: Exercise, cells: tuple[tuple[int, int], ...], source: str
) -> None:
    arguments = found.args
    most = len(arguments.posonlyargs) + len(arguments.args)
    least = most - len(arguments.defaults)
    n = len(exercise.parameters)
    needs_keyword = any(default is None for default in arguments.kw_defaults)
    if (least <= n <= most or (arguments.vararg and least <= n)) and not needs_keyword:
        return
    where = Submission(path, source, "", "", [], [], "", 1, 1, cells).place(found.lineno)
    given = ", ".join(one.arg for one in [*arguments.posonlyargs, *arguments.args])
    raise LearnError(
        _(
            "{where}: {function} takes ({given}); expected ({expected}).",
            where=where,
            function=found.name,
            given=given,
            expected=", ".join(exercise.parameters),
        )
    )


def _imports(tree: ast.Module) -> list[str]:
    """What the child imports before it locks itself in: numpy, and known packages of the file; some load libraries."""
    known = set(_PACKAGES) | (set(sys.stdlib_module_names) - {"antigravity", "this"})
    return sorted(_imported(tree) & known | {"numpy"})


def _imported(tree: ast.Module) -> set[str]:
    """The names of the packages that a file imports anywhere."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def _constants(tree: ast.Module) -> dict[str, str]:
    """Texts that the file assigns; MASK may also be a number of the learner's own."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _arrays(path: Path, tree: ast.Module, declared: str | None) -> list[str]:
    """The kinds of arrays to try: what the file declares, else what it imports, else numpy."""
    if declared is not None:
        return [_choice(path, "ARRAYS", declared, _ARRAYS)]
    return [kind for kind in _ARRAYS if kind in _imported(tree)] or ["numpy"]


def _mask(path: Path, declared: str | None) -> str:
    return "visible" if declared is None else _choice(path, "MASK", declared, MASK_CONVENTIONS)


def _choice(path: Path, name: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise LearnError(
            _(
                "{path}: {name} is {value!r}; expected one of {known}.",
                path=path,
                name=name,
                value=value,
                known=", ".join(map(json.dumps, known)),
            )
        )
    return value
