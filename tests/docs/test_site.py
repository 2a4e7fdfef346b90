"""The site: generated pages are true to the code, formulas are set, languages and links fit together."""

import dataclasses
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs" / "hooks"))

from cli_reference import help_of_commands  # noqa: E402
from formulas import FormulaError, mathml, on_page_content  # noqa: E402
from generated_pages import command_line  # noqa: E402
from languages import counterpart, joined, nearest_counterpart  # noqa: E402
from layer_diagram import draw_layers  # noqa: E402
from recipe_reference import described, recipe_keys, settings_classes  # noqa: E402
from repository_links import rewritten  # noqa: E402


@pytest.mark.parametrize("kind", settings_classes(), ids=lambda kind: kind.__name__)
def test_every_recipe_key_has_a_meaning(kind: type) -> None:
    meanings = described(kind)
    sections = {"model", "data", "clean", "tokenizer", "task", "train", "decode"}
    missing = [field.name for field in dataclasses.fields(kind) if not meanings.get(field.name)]  # type: ignore[arg-type]
    assert [name for name in missing if name not in sections] == []


def test_recipe_page_lists_values_and_defaults() -> None:
    page = recipe_keys()
    assert '| `norm_placement` | `"post"`, `"pre"` | `"post"` |' in page
    assert "| `width` | whole number, at least 1 and at most 65,536 | `512` |" in page


def test_command_page_has_every_command() -> None:
    from manyheads.cli.root import commands

    page = help_of_commands()
    for name in commands.commands:
        assert f"\n## manyheads {name}\n" in page


def test_command_page_is_in_one_language() -> None:
    chinese = command_line("zh")
    assert "用法：" in chinese
    assert "Usage:" not in chinese
    assert "[default:" not in chinese


def test_diagram_has_every_package() -> None:
    picture = draw_layers(ROOT / "pyproject.toml")
    for path in (ROOT / "src/manyheads").glob("*/__init__.py"):
        assert f">{path.parent.name}</text>" in picture


def test_attention_as_a_formula() -> None:
    set_ = mathml(r"\mathrm{softmax} \left( \frac{Q K^{\top}}{\sqrt{d_k}} \right) V", is_block=True)
    root = ElementTree.fromstring(set_)
    fraction = root.find(".//mfrac")
    assert fraction is not None
    above, below = ("".join(part.itertext()) for part in fraction)
    assert (above, below) == ("QK⊤", "dk")
    assert root.find(".//msqrt//msub") is not None
    assert [sign.text for sign in root.iter("mo")] == ["(", ")"]
    assert "".join(root.itertext()) == "softmax(QK⊤dk)V"


@pytest.mark.parametrize(
    ("latex", "elements"),
    [
        (r"\sum_{i=1}^{h} x_i^2", ["munderover", "msubsup"]),
        (r"y_t = \begin{cases} 1 & t = s \\ 0 & t \ne s \end{cases}", ["msub", "mtable", "mtr", "mtd"]),
        (r"\log p(y \mid x) \Big/ 2", ["mspace"]),
    ],
)
def test_elements_of_a_formula(latex: str, elements: list[str]) -> None:
    root = ElementTree.fromstring(mathml(latex, is_block=True))
    assert [name for name in elements if root.find(f".//{name}") is None] == []


def test_sums_inside_a_line_have_their_limits_beside_them() -> None:
    assert "<msubsup><mo>∑</mo>" in mathml(r"\sum_{i=1}^{h} x_i", is_block=False)


@pytest.mark.parametrize(
    ("latex", "error"),
    [
        (r"\unknown", r"\unknown is not known, in the formula \unknown"),
        (r"\mathcal{X}", r"\mathcal{X} is not known"),
        (r"\frac{1}", r"The formula \frac{1} ends too early"),
        (r"{x", "The formula {x ends too early"),
        (r"x}", "} without its beginning in the formula x}"),
        (r"\left( x }", r"\right expected instead of }"),
    ],
)
def test_formulas_that_cannot_be_set_are_errors(latex: str, error: str) -> None:
    with pytest.raises(FormulaError, match=re.escape(error)):
        mathml(latex, is_block=True)


def test_formulas_of_a_page_are_set_and_code_is_not() -> None:
    html = '<p>Divide by <span class="arithmatex">\\(\\sqrt{d_k}\\)</span>, <code>$x$</code>.</p>'
    assert "<msqrt>" in on_page_content(html)
    assert "<code>$x$</code>" in on_page_content(html)


def test_both_pages_of_formulas_have_the_same_ones() -> None:
    pages = [
        (ROOT / "docs" / name).read_text("utf-8") for name in ("concepts/transformer.md", "zh/concepts/transformer.md")
    ]
    english, chinese = (re.findall(r"```math\n(.*?)\n```", page, re.DOTALL) for page in pages)
    assert len(english) == len(chinese) == 16
    for one, other in zip(english, chinese, strict=True):
        assert re.sub(r"\\text\{[^}]*\}", "", one) == re.sub(r"\\text\{[^}]*\}", "", other)
        assert ElementTree.fromstring(mathml(one, is_block=True)).tag == "div"


def test_every_chinese_page_has_an_english_one() -> None:
    docs = ROOT / "docs"
    chinese = [path.relative_to(docs).as_posix() for path in (docs / "zh").rglob("*.md")]
    assert len(chinese) > 25
    assert [uri for uri in chinese if not (docs / counterpart(uri)).is_file()] == []


def test_the_switch_leads_to_the_same_page_or_to_the_nearest_one() -> None:
    pages = {"index.md", "a/index.md", "a/x.md", "b/y.md", "zh/index.md", "zh/a/index.md", "zh/a/z.md"} | {"a/z.md"}
    assert nearest_counterpart("zh/a/z.md", pages) == "a/z.md"
    assert nearest_counterpart("a/z.md", pages) == "zh/a/z.md"
    assert nearest_counterpart("a/x.md", pages) == "zh/a/index.md"
    assert nearest_counterpart("b/y.md", pages) == "zh/index.md"
    assert nearest_counterpart("index.md", pages) == "zh/index.md"


def test_lines_of_chinese_paragraphs_are_joined() -> None:
    page = "# 标题\n\n第一行，\n第二行\n第三行 `code`\n也是。\n\n```text\n一\n二\n```\n\n- 一。\n- 二\n"
    assert joined(page) == "# 标题\n\n第一行，第二行第三行 `code`\n也是。\n\n```text\n一\n二\n```\n\n- 一。\n- 二\n"


def test_links_of_files_outside_the_docs_become_links_of_the_site() -> None:
    text = (
        "[a](docs/tutorials/translate.md) [b](src/manyheads) ![c](docs/pictures/lens/readme.png) [d](README.zh-CN.md)"
    )
    assert rewritten(text, "index.md") == (
        "[a](tutorials/translate.md) b (`src/manyheads`) ![c](pictures/lens/readme.png) [d](zh/index.md)"
    )
    assert rewritten("[q](../../benchmarks/quality.md#a)", "project/tests.md") == "[q](../benchmarks/quality.md#a)"
    assert rewritten("[d](../docs/decisions/0025-mutants.md)", "benchmarks/mutants.md").startswith("[d](../decisions/")


def test_the_colors_and_the_type_are_those_of_our_pages() -> None:
    def values(path: str) -> set[str]:
        return set(re.findall(r"--[a-z-]+: [^;]+;", (ROOT / path).read_text("utf-8")))

    assert values("src/manyheads/report/templates/base.css") <= values("docs/assets/site.css")
