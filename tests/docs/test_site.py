"""The pages that are generated from the code: complete, and true to it."""

import dataclasses
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs" / "hooks"))

from cli_reference import page as cli_page  # noqa: E402
from layer_diagram import draw_layers  # noqa: E402
from recipe_reference import described, recipe_page, settings_classes  # noqa: E402


@pytest.mark.parametrize("kind", settings_classes(), ids=lambda kind: kind.__name__)
def test_every_recipe_key_has_a_meaning(kind: type) -> None:
    meanings = described(kind)
    sections = {"model", "data", "clean", "tokenizer", "task", "train", "decode"}
    missing = [field.name for field in dataclasses.fields(kind) if not meanings.get(field.name)]  # type: ignore[arg-type]
    assert [name for name in missing if name not in sections] == []


def test_recipe_page_lists_values_and_defaults() -> None:
    page = recipe_page()
    assert '| `norm_placement` | `"post"`, `"pre"` | `"post"` |' in page
    assert "| `width` | whole number, at least 1 and at most 65,536 | `512` |" in page


def test_command_page_has_every_command() -> None:
    from manyheads.cli.root import commands

    page = cli_page()
    for name in commands.commands:
        assert f"\n## manyheads {name}\n" in page


def test_diagram_has_every_package() -> None:
    picture = draw_layers(ROOT / "pyproject.toml")
    for path in (ROOT / "src/manyheads").glob("*/__init__.py"):
        assert f">{path.parent.name}</text>" in picture
