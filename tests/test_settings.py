import math
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from manyheads.errors import RecipeError
from manyheads.settings import (
    Range,
    build,
    did_you_mean,
    override,
    raise_faults,
    read_toml,
    to_table,
    to_toml,
    toml_value,
    type_faults,
)


@dataclass(frozen=True, kw_only=True)
class Inner:
    rate: float = 0.5
    kind: Literal["red", "blue"] = "red"

    def __post_init__(self) -> None:
        raise_faults([f"inner.rate = {self.rate} must not be negative."] if self.rate < 0 else [])


@dataclass(frozen=True, kw_only=True)
class Outer:
    name: str
    steps: int = 10
    rate: float = 1.0
    quick: bool = False
    words: tuple[str, ...] = ()
    limit: int | None = None
    inner: Inner = field(default_factory=Inner)
    second: Inner | None = None


def faults_of(table: dict[str, Any]) -> tuple[str, ...]:
    with pytest.raises(RecipeError) as caught:
        build(Outer, table)
    return caught.value.faults


class TestBuild:
    def test_table_becomes_settings(self) -> None:
        built = build(
            Outer, {"name": "x", "steps": 3, "words": ["a", "b"], "limit": 7, "inner": {"kind": "blue"}, "second": {}}
        )
        assert built == Outer(name="x", steps=3, words=("a", "b"), limit=7, inner=Inner(kind="blue"), second=Inner())

    def test_integer_is_accepted_as_float(self) -> None:
        rate = build(Outer, {"name": "x", "rate": 2}).rate
        assert rate == 2.0
        assert isinstance(rate, float)

    @pytest.mark.parametrize(
        ("table", "fault"),
        [
            ({"stpes": 3}, "stpes is not a setting. Did you mean steps?"),
            ({"inner": {"kin": "red"}}, "inner.kin is not a setting. Did you mean kind?"),
            ({"inner": {"zzz": 1}}, "inner.zzz is not a setting. Known: kind, rate."),
            ({"steps": "ten"}, 'steps = "ten" should be a whole number.'),
            ({"steps": 1.5}, "steps = 1.5 should be a whole number."),
            ({"steps": True}, "steps = true should be a whole number."),
            ({"rate": True}, "rate = true should be a number."),
            ({"rate": "fast"}, 'rate = "fast" should be a number.'),
            ({"quick": 1}, "quick = 1 should be true or false."),
            ({"name": 5}, "name = 5 should be text in quotes."),
            ({"words": "a"}, 'words = "a" should be a list.'),
            ({"words": ["a", 1]}, "words = 1 should be text in quotes."),
            ({"limit": "no"}, 'limit = "no" should be a whole number.'),
            ({"inner": 3}, "inner = 3 should be a table: write [inner]."),
            ({"second": 3}, "second = 3 should be a table: write [second]."),
            ({"name": {"a": [1, math.inf]}}, "name = {a = [1, inf]} should be text in quotes."),
            ({"inner": {"kind": "green"}}, 'inner.kind = "green" is not one of "red", "blue".'),
            ({"second": {"kind": "green"}}, 'second.kind = "green" is not one of "red", "blue".'),
            ({"inner": {"rate": -1}}, "inner.rate = -1.0 must not be negative."),
        ],
    )
    def test_fault_names_the_key_the_value_and_what_is_allowed(self, table: dict[str, Any], fault: str) -> None:
        assert faults_of({"name": "x", **table}) == (fault,)

    def test_all_faults_are_reported_together(self) -> None:
        assert faults_of(
            {"steps": "ten", "inner": {"rate": "x", "kind": "green", "shade": 1}, "second": {"rate": -2}}
        ) == (
            'steps = "ten" should be a whole number.',
            'inner.rate = "x" should be a number.',
            'inner.kind = "green" is not one of "red", "blue".',
            "inner.shade is not a setting. Known: kind, rate.",
            "inner.rate = -2.0 must not be negative.",
            "name is missing.",
        )

    def test_section_prefixes_the_name(self) -> None:
        with pytest.raises(RecipeError, match=r"^train\.inner\.kin is not a setting"):
            build(Outer, {"name": "x", "inner": {"kin": 1}}, "train.")

    def test_type_faults_of_an_instance(self) -> None:
        assert type_faults(Outer(name="x", second=Inner(), limit=3)) == []
        wrong = Outer(name=3, inner=replace(Inner(), kind="green"), second=4)  # type: ignore[arg-type]
        assert type_faults(wrong, "a.") == [
            "a.name = 3 should be text in quotes.",
            "a.second = 4 should be a table: write [a.second].",
        ]
        assert type_faults(wrong.inner, "a.inner.") == ['a.inner.kind = "green" is not one of "red", "blue".']


@dataclass(frozen=True, kw_only=True)
class Ranged:
    steps: Annotated[int, Range(1, 1000)] = 1
    rate: Annotated[float, Range(greater_than=0, less_than=1)] = 0.5
    decay: Annotated[float, Range(0)] = 0.0
    clip: Annotated[float, Range(greater_than=0, is_finite=False, hint="Use inf for none.")] = math.inf
    limit: Annotated[int, Range(0, 5)] | None = None

    def __post_init__(self) -> None:
        raise_faults(type_faults(self))


class TestRange:
    @pytest.mark.parametrize(
        ("changes", "fault"),
        [
            ({"steps": 0}, "steps = 0 must be at least 1 and at most 1,000."),
            ({"steps": 1001}, "steps = 1001 must be at least 1 and at most 1,000."),
            ({"steps": 1.0}, "steps = 1.0 should be a whole number."),
            ({"steps": True}, "steps = true should be a whole number."),
            ({"steps": 10**5000}, "steps = (int too large to print) must be at least 1 and at most 1,000."),
            ({"rate": 0.0}, "rate = 0.0 must be greater than 0 and less than 1."),
            ({"rate": 1}, "rate = 1.0 must be greater than 0 and less than 1."),
            ({"rate": math.nan}, "rate = nan must be greater than 0 and less than 1."),
            ({"rate": 10**400}, "rate = inf must be greater than 0 and less than 1."),
            ({"decay": math.inf}, "decay = inf must be at least 0 and finite."),
            ({"decay": math.nan}, "decay = nan must be at least 0 and finite."),
            ({"clip": -math.inf}, "clip = -inf must be greater than 0. Use inf for none."),
            ({"clip": math.nan}, "clip = nan must be greater than 0. Use inf for none."),
            ({"limit": -1}, "limit = -1 must be at least 0 and at most 5."),
            ({"limit": "3"}, 'limit = "3" should be a whole number.'),
        ],
        ids=lambda value: str(value)[:30] if isinstance(value, str) else "",
    )
    def test_value_out_of_range_is_refused_from_a_table_and_from_python(
        self, changes: dict[str, Any], fault: str
    ) -> None:
        for make in (lambda: build(Ranged, changes), lambda: Ranged(**changes)):
            with pytest.raises(RecipeError) as caught:
                make()
            assert str(caught.value) == fault

    def test_the_ends_of_a_range_are_allowed(self) -> None:
        assert Ranged(steps=1000, decay=0, clip=math.inf, limit=0).limit == 0
        assert build(Ranged, {"steps": 1, "limit": 5}).limit == 5


class TestHostileTables:
    def test_a_value_and_a_key_are_shortened(self) -> None:
        (fault,) = faults_of({"name": "x", "steps": "y" * 10_000})
        assert fault == f'steps = "{"y" * 59} … {"y" * 16}" should be a whole number.'
        (fault,) = faults_of({"name": "x", "z" * 10_000: 1})
        assert len(fault) < 300
        (fault,) = faults_of({"name": "x", "a\nb": 1})
        assert fault.startswith('"a\\nb" is not a setting.')

    def test_of_very_many_faults_the_first_are_listed(self) -> None:
        faults = faults_of({f"key{number}": 1 for number in range(100_000)})
        assert len(faults) == 11
        assert faults[-1] == "… and more."
        assert len(faults_of({"name": "x", "words": [1] * 100_000})) == 11


def test_hint_is_the_closest_word_or_all_of_them() -> None:
    assert did_you_mean("widht", ["width", "height"]) == "Did you mean width?"
    assert did_you_mean("shade", ["width", "height"]) == "Known: height, width."


def test_raise_faults_without_faults() -> None:
    raise_faults([])


# A lone surrogate is not a character: neither TOML nor UTF-8 can encode it.
texts = st.text(st.characters(exclude_categories=["Cs"]))
plain = st.one_of(texts, st.integers(-(2**63), 2**63 - 1), st.booleans(), st.floats(allow_nan=False), st.lists(texts))
tables = st.recursive(
    st.dictionaries(texts, plain, max_size=4),
    lambda inner: st.dictionaries(texts, plain | inner, max_size=4),
    max_leaves=6,
)


class TestToml:
    @settings(max_examples=200, deadline=None, derandomize=True)
    @given(tables)
    @example({"a": "\x7f \x00 \x1b \t \r\n \u2028 \x85 \ufeff \" ' \\ é 中 🙂"})
    @example({"a": [1e-09, 1e22, math.inf, -math.inf, -0.0, 5e-324]})
    @example({"a": {"b": {"c": {"d": 1}}, "e": {}}, "f": [{"g": 1, "h i": "\x7f"}]})
    @example({"a.b": {"": {"é": 1}}, "-": 1, "²": 2})
    def test_tables_round_trip(self, table: dict[str, Any]) -> None:
        assert tomllib.loads(to_toml(table)) == table

    def test_nan_is_written_in_toml_syntax(self) -> None:
        assert toml_value(math.nan) == "nan"
        assert math.isnan(tomllib.loads(to_toml({"a": math.nan}))["a"])

    @settings(max_examples=50, deadline=None, derandomize=True)
    @given(texts, st.integers(), st.floats(0, 1), st.lists(texts), st.sampled_from(["red", "blue"]), st.booleans())
    def test_settings_round_trip(
        self, name: str, steps: int, rate: float, words: list[str], kind: Literal["red", "blue"], quick: bool
    ) -> None:
        built = Outer(name=name, steps=steps, quick=quick, words=tuple(words), inner=Inner(rate=rate, kind=kind))
        assert build(Outer, tomllib.loads(to_toml(to_table(built)))) == built

    def test_layout_of_the_written_text(self) -> None:
        assert to_toml(to_table(Outer(name="x", words=("a",), second=Inner(rate=1e-09)))) == (
            'name = "x"\nsteps = 10\nrate = 1.0\nquick = false\nwords = ["a"]\n'
            '\n[inner]\nrate = 0.5\nkind = "red"\n'
            '\n[second]\nrate = 1e-09\nkind = "red"\n'
        )

    def test_file_with_and_without_byte_order_mark(self, tmp_path: Path) -> None:
        path = tmp_path / "recipe.toml"
        for byte_order_mark in (b"", b"\xef\xbb\xbf"):  # some Windows editors write one
            path.write_bytes(byte_order_mark + "名 = 1\r\n".replace("名", '"名"').encode())
            assert read_toml(path) == {"名": 1}

    @pytest.mark.parametrize(
        ("content", "fault"),
        [
            (None, ": there is no such file."),
            (b"a = \xff", ": byte 4 is not UTF-8. Save the file as UTF-8."),
            (b"a = \n", ": not valid TOML: Invalid value (at line 1, column 5)."),
        ],
    )
    def test_unreadable_file_is_reported_with_its_path(self, tmp_path: Path, content: bytes | None, fault: str) -> None:
        path = tmp_path / "recipe.toml"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(RecipeError) as caught:
            read_toml(path)
        assert str(caught.value) == f"{path}{fault}"

    def test_folder_is_not_a_recipe(self, tmp_path: Path) -> None:
        with pytest.raises(RecipeError, match=r"is a folder; a recipe is a TOML file\.$"):
            read_toml(tmp_path)


class TestOverride:
    @pytest.mark.parametrize(
        ("assignment", "value"),
        [
            ("a.b=3", 3),
            ("a.b = 1e-3 ", 1e-3),
            ("a.b=true", True),
            ("a.b=[1, 2]", [1, 2]),
            ('a.b="3"', "3"),
            ("a.b=word", "word"),
            ("a.b=x=y", "x=y"),
            ("a.b=", ""),
            ("a.b=C:\\texts\\mine.txt", "C:\\texts\\mine.txt"),
            ("a.b=1\nc = 2", "1\nc = 2"),
        ],
    )
    def test_value_is_toml_or_a_bare_word(self, assignment: str, value: object) -> None:
        table = {"a": {"b": 0, "c": 1}, "d": 2}
        assert override(table, [assignment]) == {"a": {"b": value, "c": 1}, "d": 2}
        assert table == {"a": {"b": 0, "c": 1}, "d": 2}

    def test_sections_are_created_and_the_last_assignment_wins(self) -> None:
        assert override({}, ["a.b.c=1", "d=2", "a.b.c=3"]) == {"a": {"b": {"c": 3}}, "d": 2}

    @pytest.mark.parametrize("assignment", ["steps", "=3", " =3", "a..b=3", ".a=3", "a.=3"])
    def test_invalid_assignment_is_refused(self, assignment: str) -> None:
        with pytest.raises(RecipeError) as caught:
            override({}, [assignment])
        hint = "is not an override. Write key=value, for example train.steps=500."
        assert str(caught.value) == f"{assignment!r} {hint}"

    def test_value_cannot_be_used_as_a_section(self) -> None:
        with pytest.raises(RecipeError, match=r"^'a\.b\.c=1': b is a value, not a section\.$"):
            override({"a": {"b": 0}}, ["a.b.c=1"])

    def test_integer_beyond_64_bits_names_the_key(self) -> None:
        with pytest.raises(RecipeError, match=r"^a\.b = 9{30}: value is an integer of more than 64 bits\.$"):
            override({}, ["a.b=" + "9" * 30])
