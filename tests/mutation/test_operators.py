"""Mutation testing: which changes are made, and that each of them is valid code."""

from pathlib import Path

import pytest

from mutation.forks import source_files
from mutation.operators import Mutant, find_mutants


def mutants_of(tmp_path: Path, code: str) -> list[Mutant]:
    path = tmp_path / "code.py"
    path.write_text(code, encoding="utf-8")
    return list(find_mutants(path))


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("x = a < b", ["x = (a <= b)"]),
        ("x = a < b != c", ["x = (a <= b != c)", "x = (a < b == c)"]),
        ("x = é + (a - 2)", ["x = (é - (a - 2))", "x = é + ((a + 2))", "x = é + (a - 3)"]),
        ("x = a and not b", ["x = (a or not b)", "x = a and (b)"]),
        ("x = -0.5", ["x = (0.5)", "x = -1.0"]),
        ("x: int = 1", ["x: int = 2"]),
        ("x += 2", ["x -= 2", "pass", "x += 3"]),
        ("x.y = True", ["pass", "x.y = False"]),
        ("f(a, k=b)", ["pass", "f(a)"]),
        ("f(a, b)", ["pass", "f(a)"]),
        ("x = 1 if a else b", ["x = 1 if (not a) else b", "x = 2 if a else b"]),
        ("x = [a for a in b if c]", ["x = [a for a in b if (not c)]"]),
        ("if a == 'é':\n    raise E(1)", ["if (a != 'é'):\n    raise E(1)", "if a == 'é':\n    pass"]),
        ("for a in b:\n    break", ["for a in b:\n    continue"]),
        ("def f() -> int:\n    return a", ["def f() -> int:\n    return None"]),
        ("def f() -> int:\n    return None", []),
        ("def f() -> bool:\n    return a", ["def f() -> bool:\n    return (not a)"]),
        ("def f(a=1): ...", ["def f(a=2): ..."]),
    ],
)
def test_changes(tmp_path: Path, code: str, changed: list[str]) -> None:
    found = [mutant.apply(code.encode()).decode() for mutant in mutants_of(tmp_path, code)]
    assert [text.replace("(not (a))", "(not a)").replace("(not (c))", "(not c)") for text in found] == changed


@pytest.mark.parametrize(
    "code", ['"""Docstring."""', 'x = f"{a + 1} {b}"', "x = zip(a, strict=True)", "@f(1)\ndef g(a: A[1]) -> None: ..."]
)
def test_texts_annotations_and_decorators_are_not_changed(tmp_path: Path, code: str) -> None:
    assert mutants_of(tmp_path, code) == []


def test_a_mutant_names_its_outermost_function_and_its_statement(tmp_path: Path) -> None:
    code = "A = 1\nclass B:\n    c: int = 2\n    def d(self):\n        def e():\n            return (\n 3)\n"
    found = [(mutant.function, mutant.before, list(mutant.lines)) for mutant in mutants_of(tmp_path, code)]
    assert ("", "1", [1]) in found
    assert ("", "2", [3]) in found
    assert ("B.d", "3", [6, 7]) in found


def test_a_mutant_of_a_coroutine_names_it(tmp_path: Path) -> None:
    (mutant,) = mutants_of(tmp_path, "async def f():\n    await g()\n    return 1\n")[-1:]
    assert mutant.function == "f"


def test_equal_changes_in_one_function_have_different_names(tmp_path: Path) -> None:
    names = [mutant.name for mutant in mutants_of(tmp_path, "def f():\n    g(1)\n    g(1)\n")]
    assert len(names) == len(set(names)) == 4


def test_every_mutant_of_this_package_is_valid_code() -> None:
    file = next(file for file in source_files() if file.name == "beam_search.py")
    source = file.read_bytes()
    mutants = list(find_mutants(file))
    assert len(mutants) > 50
    for mutant in mutants:
        compile(mutant.apply(source), file, "exec")
