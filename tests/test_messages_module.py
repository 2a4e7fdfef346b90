"""Messages: values, plural forms, catalogs, and the language of a process, a thread and a block."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo

from manyheads import language, messages
from manyheads.language import choose, current, from_environment, using
from manyheads.messages import Message, _, _n, join_and, join_or

WriteCatalog = Callable[..., Path]


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WriteCatalog]:
    """Write the catalog of a language, which replaces those of the package."""

    def write(code: str, **texts: str) -> Path:
        made = Catalog(locale=code)
        for english, text in texts.items():
            made.add(english, text)
        made.add(("1 row", "{n:,} rows"), ("{n:,} 行",) if code == "zh" else ("1 Zeile", "{n:,} Zeilen"))
        made.add("Wrote {path}.", "已写入 {path}。" if code == "zh" else "{path} geschrieben.")
        made.add("{others} or {last}", "{others} 或 {last}")
        made.add("{others} and {last}", "{others} 和 {last}")
        made.add(", ", "、")
        path = tmp_path / code / "LC_MESSAGES" / "manyheads.mo"
        path.parent.mkdir(parents=True)
        with path.open("wb") as file:
            write_mo(file, made)
        return path

    monkeypatch.setattr(messages, "FOLDER", tmp_path)
    messages._catalog.cache_clear()
    yield write
    messages._catalog.cache_clear()


@pytest.fixture(autouse=True)
def _own_language(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(language.VARIABLE, "en")
    yield
    choose(None)


class TestValues:
    def test_fields_are_filled(self) -> None:
        assert _("{n:,} of {total}", n=1000, total="all") == "1,000 of all"

    def test_braces_of_a_value_are_kept(self) -> None:
        assert _("Wrote {path}.", path="{path} {0} {") == "Wrote {path} {0} {."

    def test_braces_of_a_message_without_values_are_kept(self) -> None:
        assert _("Write {x}.") == str(Message("Write {x}.")) == "Write {x}."

    def test_doubled_braces_of_a_message_with_values_are_single(self) -> None:
        assert _("{{ {name} }}", name="x") == "{ x }"

    def test_a_value_may_have_any_name(self) -> None:
        assert _("{message} {text} {self}", message=1, text=2, self=3) == "1 2 3"
        assert str(Message("{message} {text} {self}", message=1, text=2, self=3)) == "1 2 3"

    def test_plural_forms(self, catalog: WriteCatalog) -> None:
        catalog("zh")
        assert [_n("1 row", "{n:,} rows", n) for n in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]
        with using("zh"):
            assert [_n("1 row", "{n:,} rows", n) for n in (0, 1, 2000)] == ["0 行", "1 行", "2,000 行"]

    def test_lists(self, catalog: WriteCatalog) -> None:
        catalog("zh")
        assert [join_or("abc"[:n]) for n in (1, 2, 3)] == ["a", "a or b", "a, b or c"]
        assert join_and([1, 2, 3]) == "1, 2 and 3"
        with using("zh"):
            assert join_or("abc") == "a、b 或 c"
            assert join_and("ab") == "a 和 b"


class TestMessage:
    def test_is_translated_when_it_is_shown(self, catalog: WriteCatalog) -> None:
        catalog("zh")
        message = Message("Wrote {path}.", path="a.txt")
        assert str(message) == "Wrote a.txt."
        with using("zh"):
            assert str(message) == f"{message}" == "已写入 a.txt。"
        assert message.by_language() == {"en": "Wrote a.txt.", "zh": "已写入 a.txt。"}

    def test_a_message_as_a_value_is_translated_with_it(self, catalog: WriteCatalog) -> None:
        catalog("zh", **{"the page": "页面"})
        message = Message("Wrote {path}.", path=Message("the page"))
        assert message.by_language() == {"en": "Wrote the page.", "zh": "已写入 页面。"}

    def test_equality_and_hash(self) -> None:
        one, same = Message("{a} {b}", a=1, b=[2]), Message("{a} {b}", b=[2], a=1)
        assert one == same and hash(one) == hash(same)
        assert one != Message("{a} {b}", a=1, b=3)
        assert one != "1 [2]"
        assert {one: "found"}[same] == "found"

    def test_hashing_reads_no_catalog(self, catalog: WriteCatalog, caplog: pytest.LogCaptureFixture) -> None:
        with using("zh"):
            hash(Message("Wrote {path}.", path="a"))
        assert not caplog.records


class TestCatalogs:
    def test_a_message_that_is_missing_is_in_english(self, catalog: WriteCatalog) -> None:
        catalog("zh")
        with using("zh"):
            assert _("Not in the catalog.") == "Not in the catalog."

    def test_a_third_language_is_one_file(self, catalog: WriteCatalog) -> None:
        catalog("de")
        with using("de"):
            assert _("Wrote {path}.", path="a") == "a geschrieben."
            assert [_n("1 row", "{n:,} rows", n) for n in (1, 2)] == ["1 Zeile", "2 Zeilen"]

    def test_languages_are_those_with_a_folder(self) -> None:
        folders = {path.name for path in Path(language.__file__).with_name("locale").iterdir() if path.is_dir()}
        assert {*language.LANGUAGES} == {"en"} | folders

    @pytest.mark.parametrize("content", [None, b"", b"not a catalog", b"\xde\x12\x04\x95" + b"\xff" * 40])
    def test_a_broken_catalog_is_one_warning_and_english(
        self, catalog: WriteCatalog, caplog: pytest.LogCaptureFixture, content: bytes | None
    ) -> None:
        path = catalog("zh")
        path.unlink() if content is None else path.write_bytes(content)
        with using("zh"):
            assert [_("Wrote {path}.", path="a") for _call in range(3)] == ["Wrote a."] * 3
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert str(path) in caplog.text

    def test_a_handler_with_messages_does_not_recurse(self, catalog: WriteCatalog) -> None:
        catalog("zh").unlink()
        lines: list[str] = []

        class Handler(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                lines.append(_("Warning: ") + record.getMessage())

        handler = Handler()
        messages.logger.addHandler(handler)
        try:
            with using("zh"):
                assert _("Stopped.") == "Stopped."
        finally:
            messages.logger.removeHandler(handler)
        assert len(lines) == 1


class TestLanguage:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [("zh", "zh"), ("zh_CN.UTF-8", "zh"), ("ZH-hans", "zh"), ("en_US", "en"), ("C.UTF-8", "en"), ("xx_YY", "en")],
    )
    def test_of_the_environment(self, monkeypatch: pytest.MonkeyPatch, value: str, expected: str) -> None:
        monkeypatch.setenv(language.VARIABLE, value)
        assert from_environment() == current() == expected
        monkeypatch.delenv(language.VARIABLE)
        monkeypatch.setenv("LC_ALL", value)
        assert from_environment() == expected

    def test_chosen_for_the_process_holds_in_every_thread(self) -> None:
        choose("zh")
        with ThreadPoolExecutor(1) as pool:
            assert current() == pool.submit(current).result() == "zh"
            choose(None)
            assert current() == pool.submit(current).result() == "en"

    def test_of_a_block_holds_in_its_own_thread_only(self) -> None:
        with ThreadPoolExecutor(1) as pool, using("zh"):
            assert current() == "zh"
            assert pool.submit(current).result() == "en"
        assert current() == "en"

    def test_blocks_nest_and_end_with_errors(self) -> None:
        with pytest.raises(KeyError), using("zh"):
            with using("en"):
                assert current() == "en"
            assert current() == "zh"
            raise KeyError
        assert current() == "en"
