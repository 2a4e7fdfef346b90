"""`manyheads init`: from files to a recipe that trains."""

from pathlib import Path

import pytest

from manyheads import corpora
from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.run import read_recipe
from manyheads.tasks import Language, LanguageSettings

from cli.conftest import Run
from tasks.small import make_task, save_encoder


def write_sides(folder: Path, name: str, n_pairs: int) -> None:
    pairs = list(corpora.pairs("en", "zh", name if name == "train" else "valid", n_pairs))
    for side, language in enumerate(("en", "zh")):
        (folder / f"{name}.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs), "utf-8")


def test_two_files_become_a_recipe_that_trains(manyheads: Run, tmp_path: Path) -> None:
    write_sides(tmp_path, "train", 300)
    write_sides(tmp_path, "val", 20)
    done = manyheads("init", "train.en", "train.zh")
    assert (done.returncode, done.stderr) == (0, "")
    for text in (
        "train.en + train.zh: 300 sentence pairs",
        "val.en + val.zh, found beside",
        "en → zh",
        "preset tiny",
        "on this machine when idle (1 thread)",
    ):
        assert text in done.stdout
    assert "Next:  manyheads train recipe.toml" in done.stdout
    recipe = read_recipe(tmp_path / "recipe.toml")
    assert recipe.data.valid == (str(tmp_path / "val.en"), str(tmp_path / "val.zh"))
    heading = (tmp_path / "recipe.toml").read_text("utf-8").split("\n\n")[0]
    assert heading.startswith("# Proposed by manyheads init;")
    assert "machine" not in heading  # the recipe is the same on every one

    trained = manyheads("train", "recipe.toml", "train.steps=2", "decode.max_new_tokens=2", "-o", "run")
    assert (trained.returncode, trained.stderr) == (0, "")

    before = (tmp_path / "recipe.toml").read_bytes()
    again = manyheads("init", "train.en", "train.zh")
    assert again.returncode == 1
    assert again.stderr == "Error: recipe.toml exists. Replace it with --overwrite, or name another file with -o.\n"
    assert (tmp_path / "recipe.toml").read_bytes() == before


def test_reviews_become_a_classifier_that_trains(manyheads: Run, tmp_path: Path) -> None:
    words = ("a fine film", "a dull film", "not a bad film")
    rows = "".join(f"{words[n % 3]} of {n} minutes,{'good' if n % 3 != 1 else 'bad'}\n" for n in range(200))
    (tmp_path / "reviews.csv").write_text(f"text,label\n{rows}rest,other\n", "utf-8")
    done = manyheads("init", "reviews.csv")
    assert (done.returncode, done.stderr) == (0, "")
    for text in (
        "Task: classify, since column label has 3 values (good, bad, other) for the texts of text.",
        "--task translate|tag|language|masked; --text-column, --label-column",
        "reviews.csv: 161 of 201 labeled texts · 40 kept out: 40 held out for validation",
        "of the training data (name a set with --valid)",
        '"text" → "label"',
        "1 of the labels has fewer than 5 examples and will hardly be learned: other.",
        "Baseline: n-gram SVM: accuracy",
        "1 layer of width 128",
    ):
        assert text in done.stdout
    trained = manyheads("train", "recipe.toml", "train.steps=2", "-o", "run")
    assert (trained.returncode, trained.stderr) == (0, "")
    assert "accuracy" in trained.stdout


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", b"\x93\xff\x00\x12\n" * 50, "is not UTF-8"),
        ("a.tsv", b"plain text\nwithout tabs\n", "a.tsv has one column only"),
        ("a.txt", b"plain text\nwithout tabs\n", "a.txt: 23 characters, too few to learn from"),
        ("a.csv", b"text,label\none,x\ntwo,y\n", "column label has 2 different values in 2 rows"),
        ("a.tsv", b"", "a.tsv is empty"),
        ("a.tsv", b"x" * 9000 + b"\ty\tz\n", "not clear which columns"),
    ],
)
def test_unusable_data_is_refused_in_one_line(
    manyheads: Run, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    done = manyheads("init", name)
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert len(done.stderr) < 500
    assert not (tmp_path / "recipe.toml").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.tsv", "--budget", "soon"], "'soon' is not a time. Write 45m, 3h or 1h30m."),
        (["a.tsv", "-o", "nowhere/r.toml"], "there is no folder nowhere"),
        (["a.tsv", "-o", "."], ". is a folder. Name a file to write with -o"),
        (["a.tsv", "-o", "a.tsv", "--overwrite"], "a.tsv is part of the data"),
        (["a.tsv", "--source-column", "1"], "only one column is given"),
        (["a.tsv", "a.tsv", "a.tsv"], "3 files are given"),
        (["missing.tsv"], "missing.tsv: there is no such file"),
        (["a.tsv", "--task", "sing"], "'sing' is not one of 'translate'"),
    ],
)
def test_unsuitable_options_are_refused(manyheads: Run, tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "a.tsv").write_text("one\t一\n" * 3, "utf-8")
    done = manyheads("init", *words)
    assert done.returncode != 0
    assert message in done.stderr


def write_reviews(folder: Path, n_rows: int) -> list[tuple[str, str]]:
    words = ("a fine film", "a dull film", "not a bad film")
    rows = [(f"{words[n % 3]} of {n} minutes", "good" if n % 3 != 1 else "bad") for n in range(n_rows)]
    text = "".join(f"{text},{label}\n" for text, label in rows)
    (folder / "reviews.csv").write_text(f"text,label\n{text}", "utf-8")
    return rows


def test_few_reviews_become_a_classifier_on_a_frozen_encoder(manyheads: Run, tmp_path: Path) -> None:
    save_encoder(tmp_path / "encoder", write_reviews(tmp_path, 60))
    done = manyheads("init", "reviews.csv", "--from", "encoder")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 layers of width 32" in done.stdout
    recipe = read_recipe(tmp_path / "recipe.toml")
    assert recipe.init_from == str(tmp_path / "encoder")
    assert (recipe.train.steps, recipe.freeze) == (0, ("source_embedding", "encoder"))
    assert recipe.task.probe and recipe.task.pooling == "mean"  # type: ignore[attr-defined]
    assert recipe.model.max_length == 32
    text = (tmp_path / "recipe.toml").read_text("utf-8")
    assert 'init_from = "encoder"' in text and "[]" not in text
    trained = manyheads("train", "recipe.toml", "-o", "run", "--plain")
    assert (trained.returncode, trained.stderr) == (0, "")
    assert "fitted by logistic regression" in trained.stdout
    assert "frozen features + logistic regression: accuracy" in trained.stdout
    again = manyheads("init", "reviews.csv", "--from", "run", "-o", "again.toml")  # a run's own bundle
    assert (again.returncode, again.stderr) == (0, "")


def test_many_reviews_fine_tune_the_encoder(manyheads: Run, tmp_path: Path) -> None:
    save_encoder(tmp_path / "encoder", write_reviews(tmp_path, 1200))
    done = manyheads("init", "reviews.csv", "--from", "encoder")
    assert (done.returncode, done.stderr) == (0, "")
    recipe = read_recipe(tmp_path / "recipe.toml")
    assert recipe.train.steps >= 100
    assert recipe.freeze == ("source_embedding",)
    assert (recipe.train.layer_decay, recipe.train.learning_rate) == (0.85, 2e-4)
    trained = manyheads("train", "recipe.toml", "train.steps=2", "-o", "run", "--plain")
    assert (trained.returncode, trained.stderr) == (0, "")
    assert "of the way from the frozen encoder to the fine-tuned one" in trained.stdout


def test_long_texts_are_read_in_windows_and_counted(manyheads: Run, tmp_path: Path) -> None:
    rows = write_reviews(tmp_path, 60)
    with (tmp_path / "reviews.csv").open("a", encoding="utf-8") as file:
        file.write("".join(f"{'a fine film ' * 90}{number},good\n" for number in range(3)))
    save_encoder(tmp_path / "encoder", rows)
    done = manyheads("init", "reviews.csv", "--from", "encoder")
    assert "of the texts have more than 128 tokens; they are read in windows, none is cut." in done.stdout
    assert "none is cut." in (tmp_path / "recipe.toml").read_text("utf-8")


def test_origins_that_cannot_be_used_are_refused(manyheads: Run, tmp_path: Path) -> None:
    rows = write_reviews(tmp_path, 60)
    (tmp_path / "empty").mkdir()
    writer = make_task(Language, LanguageSettings(), [(text,) for text, _ in rows], shape="decoder", n_decoder_layers=1)
    Bundle(writer, DecodeSettings(), {}).save(tmp_path / "writer")
    save_encoder(tmp_path / "encoder", rows)
    (tmp_path / "single.csv").write_text("text,label\nfine film,a\ndull film,b\nbad film,c\n", "utf-8")
    for arguments, message in (
        (("reviews.csv", "--from", "writer"), "writer has no encoder: it is a bundle of the task language"),
        (("reviews.csv", "--from", "empty"), "empty"),
        (("reviews.csv", "--from", "nowhere"), "nowhere"),
        (("reviews.csv", "--from", "encoder", "--task", "language"), "--from is not for the task language"),
        (("single.csv", "--from", "encoder"), "column label has 3 different values in 3 rows"),
    ):
        done = manyheads("init", *arguments)
        assert done.returncode == 1
        assert done.stderr.startswith("Error: ") and done.stderr.count("\n") == 1, done.stderr
        assert message in done.stderr
        assert not (tmp_path / "recipe.toml").exists()


def test_a_tagger_starts_from_an_encoder(manyheads: Run, tmp_path: Path) -> None:
    rows = list(corpora.rows("tag", "en", "train", 60, 1))
    blocks = ("\n".join(f"{w} {t}" for w, t in zip(row[0].split(), row[1].split(), strict=True)) for row in rows)
    (tmp_path / "train.conll").write_text("\n\n".join(blocks) + "\n", "utf-8")
    save_encoder(tmp_path / "encoder", rows)
    done = manyheads("init", "train.conll", "--from", "encoder")
    assert (done.returncode, done.stderr) == (0, "")
    recipe = read_recipe(tmp_path / "recipe.toml")
    assert (recipe.task.kind, recipe.freeze) == ("tag", ("source_embedding",))
    trained = manyheads("train", "recipe.toml", "train.steps=2", "-o", "run", "--plain")
    assert (trained.returncode, trained.stderr) == (0, "")
    assert "weights from" in trained.stdout
