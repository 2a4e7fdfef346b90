"""Messages: complete in every language, collected from the source, and in English if a catalog cannot be read."""

import ast
import gettext
import importlib.util
import logging
import os
import re
import string
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

import manyheads
from manyheads import language, messages
from manyheads.messages import Message, PluralMessage, RecordedMessage, _, _n, translate_libraries

SOURCE = Path(manyheads.__file__).parent
TRANSLATING = {"_", "_n", "Message", "PluralMessage"}
CHINESE = re.compile(r"[\u4e00-\u9fff]")
PERCENT_FIELD = re.compile(r"%\((\w+)\)")
# click passes its own English name of a type ("integer range"), which a Chinese sentence leaves out.
FEWER_FIELDS = {"{value!r} is not a valid {number_type}."}
CHINESE_LITERALS = {  # files and folders, and why
    "corpora/": "the built-in corpus",
    "text/tokens/": "characters that a tokenizer looks for",
    "text/language_codes.py": "the range of Chinese characters",
    "metrics/corpus_scores.py": "the range of Chinese characters",
    "metrics/span_scorecard.py": "the range of Chinese characters",
    "tasks/tag/linear_tagger.py": "characters that are features",
    "tasks/proposal.py": "an example of a character",
    "tasks/columns.py": "names of columns",
    "doctor/corpus_stats.py": "what wrong decoding leaves behind",
    "tasks/seq2seq/seq2seq_commands.py": "texts of the built-in corpus to try",
    "tasks/classify/classify_commands.py": "texts of the built-in corpus to try",
    "tasks/tag/tag_commands.py": "texts of the built-in corpus to try",
    "tasks/language/language_commands.py": "texts of the built-in corpus to try",
    "cli/quickstart.py": "the names of languages, each in its own language",
    "walks/toy_model.py": "words of the toy model",
}


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """tools/catalogs.py, which is no package."""
    spec = importlib.util.spec_from_file_location("catalogs", SOURCE.parents[1] / "tools" / "catalogs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def collected(tool: ModuleType) -> Catalog:
    return tool.collect()


@pytest.fixture(params=sorted(SOURCE.glob("locale/*/LC_MESSAGES/manyheads.po")), ids=lambda path: path.parts[-3])
def catalog(request: pytest.FixtureRequest) -> Catalog:
    with request.param.open("rb") as file:
        return read_po(file)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which the Chinese catalog is searched, instead of that of the package."""
    monkeypatch.setattr(messages, "FOLDER", tmp_path)
    monkeypatch.setenv("LANGUAGE", "")
    domain = gettext.textdomain()
    messages._catalog.cache_clear()
    path = tmp_path / "zh" / "LC_MESSAGES"
    path.mkdir(parents=True)
    yield path
    gettext.textdomain(domain)
    messages._catalog.cache_clear()


def forms(texts: str | Iterable[str]) -> list[str]:
    """Return the forms of a message, or of its translation."""
    return [texts] if isinstance(texts, str) else list(texts)


def fields(text: str) -> set[str]:
    """Return the names of the fields of a text."""
    try:
        named = {
            str(field).split(".")[0].split("[")[0] for _text, field, _s, _c in string.Formatter().parse(text) if field
        }
    except ValueError:  # a brace that is no field, as in an example of JSON
        named = set()
    return named | set(PERCENT_FIELD.findall(text))


def report(lines: list[str]) -> str:
    """Return what is wrong, a line each: pytest would compare long lists for minutes."""
    return "\n".join([f"{len(lines)}:", *lines])


def python_files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def translating_calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TRANSLATING:
            yield node


def literals(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the strings of a module that are no docstrings."""
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node


class TestCatalogs:
    def test_no_message_is_missing(self, collected: Catalog, catalog: Catalog) -> None:
        missing = []
        for message in collected:
            found = catalog.get(forms(message.id)[0], message.context)
            if message.id and (found is None or found.id != message.id or not all(forms(found.string))):
                missing.append(f"{message.locations[:1] or message.auto_comments}: {message.id!r}")
        assert not missing, report(missing)

    def test_no_message_is_stale(self, collected: Catalog, catalog: Catalog) -> None:
        known = {forms(message.id)[0] for message in collected}
        assert [message.id for message in catalog if forms(message.id)[0] not in known] == []
        assert not catalog.obsolete

    def test_no_message_has_other_fields(self, catalog: Catalog) -> None:
        other = []
        for message in catalog:
            sources = [fields(form) for form in forms(message.id)]
            least, most = set.intersection(*sources), set.union(*sources)
            for form in forms(message.string):
                is_right = fields(form) <= most if message.id in FEWER_FIELDS else least <= fields(form) <= most
                if form and message.id and not is_right:
                    other.append(f"{message.id!r}: {form!r}")
        assert not other, report(other)

    def test_no_translation_fails_to_format(self, catalog: Catalog) -> None:
        """An unknown conversion or an unbalanced brace raises ValueError when the message is shown."""
        for message in catalog:
            if message.id and any(map(fields, forms(message.id))):
                for form in forms(message.string):
                    list(string.Formatter().parse(form))


class TestSource:
    def test_every_message_is_a_literal_that_is_collected(self, collected: Catalog) -> None:
        """Neither an f-string nor a call inside an f-string is collected."""
        known = {form for message in collected for form in forms(message.id)}
        lost = []
        for path in python_files():
            tree = ast.parse(path.read_text("utf-8"))
            for call in translating_calls(tree):
                texts = call.args[:2] if call.func.id in ("_n", "PluralMessage") else call.args[:1]  # type: ignore[attr-defined]
                for text in texts:
                    is_lost = isinstance(text, ast.Constant) and text.value not in known
                    if is_lost or isinstance(text, ast.JoinedStr | ast.BinOp):
                        lost.append(f"{path.relative_to(SOURCE)}:{call.lineno}")
        assert not lost, report(lost)

    def test_no_inline_pair_of_languages_is_left(self) -> None:
        left = []
        for path in python_files():
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call) and ast.unparse(node.func).removeprefix("language.") in (
                    "pick",
                    "Bilingual",
                ):
                    left.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
        assert not left, report(left)

    def test_no_chinese_is_in_the_source(self) -> None:
        found = []
        for path in python_files():
            name = str(path.relative_to(SOURCE))
            if not name.startswith(tuple(CHINESE_LITERALS)):
                for node in literals(ast.parse(path.read_text("utf-8"))):
                    if CHINESE.search(str(node.value)):
                        found.append(f"{name}:{node.lineno}: {node.value}")
        assert not found, report(found)


class TestTranslation:
    def test_a_message_is_in_the_language_in_use(self) -> None:
        message = Message("Wrote {path}", path="a.html")
        with language.using("zh"):
            assert str(message) == _("Wrote {path}", path="a.html") == "已写入 a.html"
        assert message.by_language() == {"en": "Wrote a.html", "zh": "已写入 a.html"}

    @pytest.mark.parametrize(("n", "english"), [(1, "1 row"), (0, "0 rows"), (2000, "2,000 rows")])
    def test_a_number_has_its_form(self, n: int, english: str) -> None:
        assert _n("1 row", "{n:,} rows", n) == english
        assert PluralMessage("1 row", "{n:,} rows", n).by_language() == {"en": english, "zh": f"{n:,} 行"}

    def test_a_message_in_a_message_is_translated_with_it(self) -> None:
        message = Message("Report: {path}", path=Message("row"))
        assert message.by_language() == {"en": "Report: row", "zh": "报告：行"}

    def test_messages_are_equal_if_they_read_the_same(self) -> None:
        written = RecordedMessage({"en": "row", "zh": "行"})
        assert written == Message("row")
        assert hash(written) == hash(Message("row"))
        assert Message("row") != Message("pair")
        assert Message("row") != "row"

    def test_braces_of_a_message_without_fields_are_text(self) -> None:
        assert _('{"texts": 1}') == '{"texts": 1}'


class TestFallback:
    def test_missing_catalog(self, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        with language.using("zh"):
            assert _("Stopped.") == "Stopped."
            assert _n("1 row", "{n:,} rows", 2) == "2 rows"
            translate_libraries()
        assert os.environ["LANGUAGE"] == "en"
        assert len(caplog.messages) == 1  # once, not for every message
        assert caplog.messages[0].startswith("The messages of zh cannot be read (")
        assert caplog.messages[0].endswith("; they are in English.")

    @pytest.mark.parametrize(
        "content",
        [b"", b"not a catalog", b"\xde\x12\x04\x95" + b"\xff" * 60, b"\xde\x12\x04\x95" + b"\0" * 10],
        ids=["empty", "text", "wrong sizes", "cut off"],
    )
    def test_broken_catalog(self, folder: Path, caplog: pytest.LogCaptureFixture, content: bytes) -> None:
        (folder / "manyheads.mo").write_bytes(content)
        caplog.set_level(logging.WARNING)
        with language.using("zh"):
            translate_libraries()
            assert _("Stopped.") == "Stopped."
            assert str(click.NoSuchOption("--x")) == "No such option '--x'."
        assert len(caplog.messages) <= 1

    def test_cut_off_catalog(self, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        whole = (SOURCE / "locale" / "zh" / "LC_MESSAGES" / "manyheads.mo").read_bytes()
        (folder / "manyheads.mo").write_bytes(whole[: len(whole) // 2])
        with language.using("zh"):
            assert _("Stopped.") == "Stopped."
        assert len(caplog.messages) == 1

    @pytest.mark.parametrize("value", ["xx", "de_DE.UTF-8", "C"])
    def test_unknown_language_of_the_environment_is_english(self, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
        monkeypatch.setenv("MANYHEADS_LANG", value)
        assert language.from_environment() == "en"


def test_libraries_are_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGUAGE", "")
    domain = gettext.textdomain()
    try:
        with language.using("zh"):
            translate_libraries()
            assert str(click.NoSuchOption("--x")) == "没有选项 '--x'。"
        with language.using("en"):
            translate_libraries()
            assert str(click.NoSuchOption("--x")) == "No such option '--x'."
    finally:
        gettext.textdomain(domain)
