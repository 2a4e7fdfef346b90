"""`Corpus`: cleaning, held-out rows, cache keys, and mixes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads import corpora
from manyheads.data import CleanSettings, Texts
from manyheads.errors import DataError, RecipeError
from manyheads.run import Corpus, DataSettings, MixSettings, Prepared, Recipe, Stage, read_recipe, run
from manyheads.settings import to_table, to_toml
from manyheads.tasks import LanguageSettings

Table = Callable[..., dict[str, object]]
GOOD = [(f"sentence number {number}", f"Satz Nummer {number}") for number in range(100)]


def write(folder: Path, name: str, pairs: list[tuple[str, str]]) -> str:
    (folder / name).write_text("".join(f"{source}\t{target}\n" for source, target in pairs), "utf-8")
    return str(folder / name)


def key(data: DataSettings, clean: CleanSettings | None = None) -> str:
    corpus = Corpus(data, 1, clean or CleanSettings())
    return corpus.key(corpus.digests())


def stored(corpus: Corpus, folder: Path) -> tuple[list[tuple[str, str]], dict[str, list[object]]]:
    corpus.write(folder)
    return list(Texts.open(folder)), json.loads((folder / "counts.json").read_text("utf-8"))


def test_validation_and_test_rows_are_dropped_from_training(tmp_path: Path) -> None:
    data = DataSettings(
        train=(write(tmp_path, "train.tsv", GOOD),),
        valid=(write(tmp_path, "valid.tsv", [("Sentence  number 3", "anders")]),),
        test=(write(tmp_path, "test.tsv", [("different", "satz nummer 5")]),),
    )
    pairs, metadata = stored(Corpus(data, 1), tmp_path / "text")
    assert pairs == [pair for number, pair in enumerate(GOOD) if number not in (3, 5)]
    assert metadata == {"counts": [{"kept": 98, "in valid or test": 2}], "boundaries": [0, 98]}


def test_rows_held_out_for_validation_do_not_leak(tmp_path: Path) -> None:
    train = write(tmp_path, "train.tsv", [*GOOD, *((source.upper(), "etwas anderes") for source, _ in GOOD)])
    corpus = Corpus(DataSettings(train=(train,)), 1)
    held_out = list(corpus.valid())
    assert len(held_out) == 40
    pairs, metadata = stored(corpus, tmp_path / "text")
    assert not {source.lower() for source, _ in held_out} & {source.lower() for source, _ in pairs}
    (counts,) = metadata["counts"]
    assert isinstance(counts, dict)
    assert sum(counts.values()) == 200
    assert counts["held out for validation"] == len(held_out)


def test_copies_of_held_out_rows_are_counted_as_duplicates(tmp_path: Path) -> None:
    """The number held out is that of the validation set, whatever the corpus that repeats a row."""
    mix = (
        MixSettings(files=(write(tmp_path, "a.tsv", [*GOOD, *GOOD[:50]]),)),
        MixSettings(files=(write(tmp_path, "b.tsv", GOOD),)),
    )
    corpus = Corpus(DataSettings(mix=mix), 1)
    counts = corpus.count()
    assert counts["held out for validation"] == len(list(corpus.valid()))
    assert counts["duplicate"] == 50 + len(GOOD)


def test_badly_encoded_lines_are_counted_and_many_are_an_error(tmp_path: Path) -> None:
    valid = write(tmp_path, "valid.tsv", [("v", "w")])
    lines = [f"sentence {number}\tSatz {number}\n".encode() for number in range(300)]
    (tmp_path / "train.tsv").write_bytes(b"".join([*lines, "caf\xe9\tKaffee\n".encode("latin-1")]))
    corpus = Corpus(DataSettings(train=(str(tmp_path / "train.tsv"),), valid=(valid,)), seed=1)
    pairs, metadata = stored(corpus, tmp_path / "stored")
    assert len(pairs) == 300
    assert metadata["counts"] == [{"kept": 300, "bad encoding": 1}]
    (tmp_path / "train.tsv").write_bytes("na\xefve\tnaiv\n".encode("latin-1") * 300)
    with pytest.raises(DataError, match=r"train\.tsv, line 1: .* is not UTF-8. It may be LATIN1"):
        stored(corpus, tmp_path / "again")


def test_columns_apply_to_files_that_have_columns(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("id\ten\tde\n" + "".join(f"{n}\tone {n}\teins {n}\n" for n in range(9)))
    for name in ("v.en", "v.de"):
        (tmp_path / name).write_text("x\n")
    data = DataSettings(
        train=(str(tmp_path / "train.tsv"),),
        valid=(str(tmp_path / "v.en"), str(tmp_path / "v.de")),
        source_column="en",
        target_column="de",
    )
    pairs, _ = stored(Corpus(data, seed=1), tmp_path / "stored")
    assert pairs[0] == ("one 0", "eins 0")
    assert list(Corpus(data, seed=1).valid()) == [("x", "x")]
    own = MixSettings(files=data.train, source_column="de", target_column="id")
    for skip_bad_lines in (False, True):
        rows = list(Corpus(data, seed=1).read(own, skip_bad_lines=skip_bad_lines))
        assert rows[:2] == [("eins 0", "0"), ("eins 1", "1")]  # the columns of a corpus come before those of [data]


def test_mix_records_counts_and_boundaries_of_each_corpus(tmp_path: Path) -> None:
    valid = write(tmp_path, "valid.tsv", [("a", "b")])
    first, second = write(tmp_path, "1.tsv", GOOD[:10]), tmp_path / "2.tsv"
    second.write_text("de\ten\nSatz Nummer 1\tsentence number 1\nneu\tnew\n", "utf-8")
    mix = (
        MixSettings(files=(first,)),
        MixSettings(files=(str(second),), source_column="en", target_column="de", weight=2.5),
    )
    corpus = Corpus(DataSettings(mix=mix, valid=(valid,)), 1)
    pairs, metadata = stored(corpus, tmp_path / "text")
    assert pairs == [*GOOD[:10], ("new", "neu")]
    assert metadata == {"counts": [{"kept": 10}, {"kept": 1, "duplicate": 1}], "boundaries": [0, 10, 11]}
    assert corpus.weights == [1.0, 2.5]


def test_cache_key_depends_on_contents_not_on_file_names(tmp_path: Path) -> None:
    valid = write(tmp_path, "valid.tsv", GOOD[:2])
    train = write(tmp_path, "train.tsv", GOOD)
    renamed = write(tmp_path, "renamed.tsv", GOOD)
    other = write(tmp_path, "other.tsv", [*GOOD[:-1], ("sentence number 98", "Satz Nummer 99")])
    known = key(DataSettings(train=(train,), valid=(valid,)))
    assert key(DataSettings(train=(renamed,), valid=(valid,))) == known
    weighted = MixSettings(files=(train,), weight=3.0)
    assert key(DataSettings(mix=(weighted,), valid=(valid,))) == known
    others = [
        key(DataSettings(train=(other,), valid=(valid,))),
        key(DataSettings(train=(train,), valid=(other,))),
        key(DataSettings(train=(train,), valid=(valid,), test=(other,))),
        key(DataSettings(train=(train,))),
        key(DataSettings(train=(train,), valid=(valid,), source_column="2", target_column="1")),
        key(DataSettings(train=(train,), valid=(valid,)), CleanSettings(max_ratio=2.0)),
        key(DataSettings(mix=(weighted, weighted), valid=(valid,))),
    ]
    assert len({known, *others}) == 1 + len(others)


def test_runs_share_the_cache(tmp_path: Path, cache: Path, recipe_table: Table) -> None:
    files = [str(tmp_path / "a.en"), str(tmp_path / "a.de")]
    pairs = list(corpora.pairs("en", "de", "train", 300))
    for side, file in enumerate(files):
        Path(file).write_text("".join(pair[side] + "\n" for pair in pairs), "utf-8")

    def stages(folder: str) -> list[str]:
        events = run(Recipe.from_table(recipe_table(data={"train": files})), tmp_path / folder)
        descriptions = []
        for event in events:
            if isinstance(event, Stage):
                descriptions.append(event.description)
            elif isinstance(event, Prepared):
                break
        events.close()  # type: ignore[attr-defined]
        return descriptions

    training = "training a tokenizer of at most 1,500 tokens"
    assert stages("first") == ["cleaning the text", training, "tokenizing the text"]
    assert stages("first") == []
    for file in files:
        Path(file).touch()
    assert stages("second") == [training]  # the same tokenizer, so the same ids
    Path(files[0]).write_text(Path(files[0]).read_text("utf-8").replace("the", "The"), "utf-8")
    assert stages("second") == ["cleaning the text", training, "tokenizing the text"]
    assert len(list(cache.glob("text-*"))) == len(list(cache.glob("ids-*"))) == 2


def test_files_that_change_while_being_read_are_an_error(
    tmp_path: Path, cache: Path, recipe_table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = write(tmp_path, "train.tsv", GOOD)
    write_text = Corpus.write

    def write_and_change(corpus: Corpus, folder: Path) -> None:
        write_text(corpus, folder)
        write(tmp_path, "train.tsv", GOOD[:50])

    monkeypatch.setattr(Corpus, "write", write_and_change)
    with pytest.raises(DataError, match="The training files changed while they were being read"):
        list(run(Recipe.from_table(recipe_table(data={"train": [train]})), tmp_path / "run"))
    assert not list(cache.glob("*text-*"))


def test_mix_round_trip_through_toml(tmp_path: Path, recipe_table: Table) -> None:
    (tmp_path / "r.toml").write_text(
        '[[data.mix]]\nfiles = ["a.en", "a.de"]\nweight = 2\n[[data.mix]]\nfiles = ["b.tsv"]\n'
        '[model]\npreset = "tiny"\n[clean]\nmax_ratio = 0\n',
        "utf-8",
    )
    recipe = read_recipe(tmp_path / "r.toml")
    assert recipe.data.mix[0] == MixSettings(files=(str(tmp_path / "a.en"), str(tmp_path / "a.de")), weight=2.0)
    assert recipe.clean.max_ratio == 0
    (tmp_path / "again.toml").write_text(to_toml(to_table(recipe)), "utf-8")
    assert read_recipe(tmp_path / "again.toml") == recipe


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": {"train": ["a"], "mix": [{"files": ["b"]}]}}, "data.train and data.mix are both given"),
        ({"data": {"builtin": "en-zh", "mix": [{"files": ["b"]}]}}, "data.builtin and data.mix are both given"),
        ({"data": {"mix": [{"files": ["a", "b", "c"]}]}}, "data.mix (number 1) names 3 files"),
        ({"data": {"mix": [{"files": ["a.tsv"], "weight": 0}]}}, "data.mix.weight = 0.0 of a.tsv must be more than 0"),
        ({"data": {"mix": [{"files": ["a.tsv"], "wait": 2}]}}, "data.mix.wait is not a setting. Did you mean weight?"),
        ({"clean": {"max_ratios": 2}}, "clean.max_ratios is not a setting. Did you mean max_ratio?"),
        ({"clean": {"max_ratio": 2.0}}, "clean cannot be set: the built-in corpus is clean"),
    ],
)
def test_invalid_settings_are_refused(recipe_table: Table, changes: dict[str, object], message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        Recipe.from_table(recipe_table(**changes))
    assert message in str(caught.value)


def test_mix_samples_by_weight_and_resumes_bit_identically(tmp_path: Path, recipe_table: Table) -> None:
    pairs = list(corpora.pairs("en", "de", "train", 300))
    mix = [
        {"files": [write(tmp_path, "1.tsv", pairs[:200])], "weight": 0.5},
        {"files": [write(tmp_path, "2.tsv", pairs[200:])], "weight": 3},
    ]
    recipe = Recipe.from_table(recipe_table(data={"mix": mix, "valid": [write(tmp_path, "v.tsv", [("a", "b")])]}))
    list(run(recipe, tmp_path / "whole"))
    calls = iter([False, True])
    list(run(recipe, tmp_path / "parts", lambda: next(calls)))
    list(run(recipe, tmp_path / "parts"))
    weights = [(tmp_path / name / "bundle" / "weights.safetensors").read_bytes() for name in ("whole", "parts")]
    assert weights[0] == weights[1]

    light = [dict(mix[0], weight=1), dict(mix[1], weight=1)]
    other = Recipe.from_table(recipe_table(data={"mix": light, "valid": [str(tmp_path / "v.tsv")]}))
    with pytest.raises(RecipeError, match=r"contains a run of another recipe \(data\.mix was"):
        list(run(other, tmp_path / "whole"))
    stages = [event for event in run(other, tmp_path / "light") if isinstance(event, Stage)]
    assert [stage.description for stage in stages[:1]] == [
        "training a tokenizer of at most 1,500 tokens"
    ]  # weights are not in the key
    assert (tmp_path / "light" / "bundle" / "weights.safetensors").read_bytes() != weights[0]


def test_documents_without_validation_set_hold_out_the_end_of_the_text(tmp_path: Path) -> None:
    texts = ["abcdefghij" * 10, "klmnopqrst" * 10]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.txt").write_text(text)
    files = tuple(str(tmp_path / f"{number}.txt") for number in range(2))
    corpus = Corpus(DataSettings(train=files, valid_fraction=0.25), 1, task=LanguageSettings())
    assert "".join(text for (text,) in corpus.valid()) == texts[1][50:]
    assert [text for (text,) in corpus.train()] == [texts[0], texts[1][:50]]
    rows, _ = stored(corpus, tmp_path / "stored")
    assert rows == [(texts[0],), (texts[1][:50],)]


def test_mix_of_documents_without_validation_set(tmp_path: Path) -> None:
    for name, letter in (("a.txt", "a"), ("b.txt", "b")):
        (tmp_path / name).write_text("".join(f"{letter}{n:09d}\n" for n in range(10)))
    mix = tuple(MixSettings(files=(str(tmp_path / name),)) for name in ("a.txt", "b.txt"))
    corpus = Corpus(DataSettings(mix=mix, valid_fraction=0.25), 1, task=LanguageSettings(documents="line"))
    rows, _ = stored(corpus, tmp_path / "stored")
    assert rows == [(f"a{n:09d}",) for n in range(10)] + [(f"b{n:09d}",) for n in range(5)]
    assert [text for (text,) in corpus.valid()] == [f"b{n:09d}" for n in range(5, 10)]


def test_documents_that_are_also_held_out_are_dropped(tmp_path: Path) -> None:
    texts = ["abcdefghij" * 10, "klmnopqrst" * 10, "abcdefghij" * 10]
    (tmp_path / "a.txt").write_text("\n".join(texts))
    settings = LanguageSettings(documents="line")
    corpus = Corpus(DataSettings(train=(str(tmp_path / "a.txt"),), valid_fraction=0.4), 1, task=settings)
    rows, _ = stored(corpus, tmp_path / "stored")
    assert rows == [(texts[1][:80],)]
    assert corpus.count() == {"kept": 1, "in valid or test": 1}
