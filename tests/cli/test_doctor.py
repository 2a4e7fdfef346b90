"""`manyheads doctor` for recipes and bundles."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.bundle import Bundle
from manyheads.settings import to_toml

from cli.conftest import Run

Table = Callable[..., dict[str, object]]


@pytest.fixture
def recipe(tmp_path: Path, recipe_table: Table) -> Path:
    lines = [f"This is sentence number {n} of many." for n in range(300)]
    (tmp_path / "a.en").write_text("\n".join(lines) + "\n", "utf-8")
    (tmp_path / "a.de").write_text(
        "\n".join(f"Das ist Satz Nummer {n} von vielen." for n in range(300)) + "\n", "utf-8"
    )
    (tmp_path / "v.en").write_text(f"{lines[7]}\nSomething else.\n", "utf-8")
    (tmp_path / "v.de").write_text("Satz sieben.\nEtwas anderes.\n", "utf-8")
    table = recipe_table(
        data={"train": ["a.en", "a.de"], "valid": ["v.en", "v.de"]},
        task={"source_language": "en", "target_language": "de"},
        clean={"drop_leaked": False},
    )
    path = tmp_path / "r.toml"
    path.write_text(to_toml(table), "utf-8")
    return path


def test_recipe(manyheads: Run, recipe: Path) -> None:
    done = manyheads("doctor", recipe, "--quick")
    assert done.returncode == 1, done.stdout + done.stderr  # half of the validation set is in the training set
    assert "✗ leakage" in done.stdout
    assert "v.en:1: This is sentence number 7" in done.stdout
    assert "✓ alignment" in done.stdout
    assert "problems: 1." in done.stdout
    assert "overfit one batch" not in done.stdout


def test_json_and_all_faults_of_a_recipe(manyheads: Run, recipe: Path) -> None:
    broken = recipe.read_text("utf-8").replace("n_heads = 2", "n_head = 2").replace("steps = 6", 'steps = "6"')
    recipe.write_text(broken, "utf-8")
    done = manyheads("doctor", recipe, "--json")
    payload = json.loads(done.stdout)
    assert (done.returncode, payload["kind"], payload["is_ok"]) == (1, "recipe", False)
    assert len(payload["findings"]) == 2
    assert "Did you mean n_heads?" in payload["findings"][0]["message"]


def test_missing_file_is_a_finding(manyheads: Run, recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "a.de").unlink()
    done = manyheads("doctor", recipe)
    assert done.returncode == 1
    assert "✗ readable" in done.stdout
    assert "there is no such file" in done.stdout


def test_bundle(manyheads: Run, untrained: Bundle, tmp_path: Path) -> None:
    untrained.save(tmp_path / "b")
    done = manyheads("doctor", "b", "--json")
    checks = [finding["check"] for finding in json.loads(done.stdout)["findings"]]
    assert checks == ["manifest", "finite weights", "dead rows", "output collapse"]


@pytest.mark.parametrize(
    ("path", "message"), [("nowhere", "there is no such file or folder"), (".", "is neither a run")]
)
def test_bad_input(manyheads: Run, path: str, message: str) -> None:
    done = manyheads("doctor", path)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stdout == ""
