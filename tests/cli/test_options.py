"""Options of decoding and thresholds, of `predict` and `evaluate`: used where they apply, refused elsewhere."""

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

from manyheads.bundle import Bundle, load
from manyheads.cli.root import commands
from manyheads.decode import DecodeSettings
from manyheads.tasks import Classify, ClassifySettings, Tag, TagSettings

from tasks.small import make_task

TEXTS = ["The dog sleeps.", "A small cat reads the book."]
ROWS = [(f"the {noun} was {word}", label) for noun in "abcdef" for word, label in (("great", "good"), ("dull", "bad"))]
TAGGED = [(f"{name} sleeps .", "B-PER O O") for name in ("Ada", "Ben", "Cleo")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundles")
    torch.manual_seed(1)
    classifier = make_task(Classify, ClassifySettings(), ROWS)
    recipe = {"data": {"train": ["t.tsv"]}, "task": {"kind": "classify"}}
    Bundle(classifier, DecodeSettings(), recipe).save(path / "classifier")
    tagger = make_task(Tag, TagSettings(), TAGGED)
    torch.nn.init.normal_(tagger.module.output.weight, std=1.0)
    Bundle(tagger, DecodeSettings(), recipe | {"task": {"kind": "tag"}}).save(path / "tagger")
    (path / "rows.tsv").write_text("text\tlabel\n" + "".join(f"{a}\t{b}\n" for a, b in ROWS), encoding="utf-8")
    (path / "rows.conll").write_text("Ada B-PER\nsleeps O\n. O\n\nBen B-PER\nsings O\n", encoding="utf-8")
    return path


def run(*words: object, stdin: str = "") -> Result:
    return CliRunner().invoke(commands, [str(word) for word in words], input=stdin)


@pytest.mark.parametrize("engine", ["torch", "native"])
def test_predict_uses_the_length_penalty(bundle_folder: Path, engine: str) -> None:
    bundle = load(bundle_folder)
    how = ("--beam", 4, "--length-penalty", 3, "--max-new-tokens", 4, "--engine", engine, "--json")
    result = run("predict", bundle_folder, *how, stdin="\n".join(TEXTS) + "\n")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    expected = bundle.candidates(TEXTS, beam=4, length_penalty=3.0, max_new_tokens=4)
    default = bundle.candidates(TEXTS, beam=4, max_new_tokens=4)
    for row, own, other in zip(rows, expected, default, strict=True):
        assert row["candidates"][0]["text"] == own[0].text
        assert row["candidates"][0]["score"] == pytest.approx(own[0].score, rel=1e-4)
        assert row["candidates"][0]["score"] != pytest.approx(other[0].score, rel=1e-4)


def test_evaluate_decodes_as_the_options_say(bundle_folder: Path, tmp_path: Path) -> None:
    for name, lines in (("t.en", TEXTS), ("t.zh", ["那条狗在睡觉。", "一只小猫在看书。"])):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines), "utf-8")
    how = ("--greedy", "--max-new-tokens", 2, "-o", tmp_path / "out")
    assert run("evaluate", bundle_folder, tmp_path / "t.en", tmp_path / "t.zh", *how).exit_code == 0
    written = (tmp_path / "out").read_text("utf-8").splitlines()
    assert written == load(bundle_folder).predict(TEXTS, method="greedy", max_new_tokens=2)
    assert written != load(bundle_folder).predict(TEXTS)


@pytest.mark.parametrize("command", ["predict", "evaluate"])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--length-penalty", 11], "decode.length_penalty = 11.0 must be at least 0 and at most 10."),
        (["--beam", 0], "decode.beam = 0 must be at least 1 and at most 256."),
        (["--greedy", "--length-penalty", 1], "--length-penalty is for beam search"),
        (["--greedy", "--beam", 2], "exclude one another"),
        (["--top-k", 2], "are for --sample"),
        (["--threshold", 0.5], "--threshold needs a classifier or a tagger; "),
        (["--threshold", 1], "1.0 is not in the range 0<=x<1"),
    ],
)
def test_refused_for_a_translation_model(bundle_folder: Path, command: str, words: list[object], message: str) -> None:
    result = run(command, bundle_folder, *words)
    assert result.exit_code != 0
    assert message in result.output + str(result.exception)


def test_refused_for_models_that_generate_no_text(folder: Path, bundle_folder: Path) -> None:
    for words, names in (
        (("--length-penalty", 1), "--length-penalty"),
        (("--beam", 2, "--max-new-tokens", 3), "--max-new-tokens, --beam"),
        (("--greedy",), "--greedy"),
        (("--sample", "--top-k", 3), "--sample, --top-k"),
    ):
        result = run("predict", folder / "classifier", *words, stdin="x\n")
        expected = f"is a bundle of the task classify, which generates no text: leave out {names}.\n"
        assert result.exit_code == 2
        assert result.stderr.endswith(expected)
    assert "--stop needs a language model" in run("predict", bundle_folder, "--stop", "a").stderr
    assert "--precision needs a classifier or a tagger" in run("evaluate", bundle_folder, "--precision", 0.9).stderr
    both = run("evaluate", folder / "classifier", folder / "rows.tsv", "--precision", 0.9, "--threshold", 0.5)
    assert "--precision chooses a threshold: leave out --threshold." in both.stderr


def test_predict_leaves_out_labels_below_the_threshold(folder: Path) -> None:
    texts = "".join(f"{text}\n" for text, _ in ROWS)
    labels = [line.split("\t") for line in run("predict", folder / "classifier", stdin=texts).stdout.splitlines()]
    middle = sorted(float(probability) for _, probability in labels)[len(labels) // 2]
    result = run("predict", folder / "classifier", "--threshold", middle, stdin=texts)
    for (label, probability), line in zip(labels, result.stdout.splitlines(), strict=True):
        found, same = line.split("\t")
        assert same == probability
        if abs(float(probability) - middle) > 1e-4:  # printed probabilities are rounded
            assert found == (label if float(probability) > middle else "?")
    assert "?\t" in result.stdout


def test_predict_leaves_out_spans_below_the_threshold(folder: Path) -> None:
    texts = "".join(f"{text}\n" for text, _ in TAGGED)

    def spans(*words: object) -> list[float]:
        lines = run("predict", folder / "tagger", "--json", *words, stdin=texts).stdout.splitlines()
        return [span["probability"] for line in lines for span in json.loads(line)["spans"]]

    everything = spans()
    middle = sorted(everything)[len(everything) // 2]
    assert spans("--threshold", middle) == [probability for probability in everything if probability >= middle]
    assert len(spans("--threshold", middle)) < len(everything)


@pytest.fixture
def half_right(folder: Path, tmp_path: Path) -> Path:
    """Rows of which the six most probable labels are right, and the other six wrong."""
    texts, other = [text for text, _ in ROWS], {"good": "bad", "bad": "good"}
    found = zip(texts, load(folder / "classifier").task.predict(texts, DecodeSettings()), strict=True)
    ranked = sorted(found, key=lambda pair: -max(pair[1].probabilities.values()))
    rows = [(text, one.answer if rank < 6 else other[one.answer]) for rank, (text, one) in enumerate(ranked)]
    path = tmp_path / "half.tsv"
    path.write_text("text\tlabel\n" + "".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    return path


def test_evaluate_chooses_the_threshold_of_a_precision(folder: Path, half_right: Path) -> None:
    words = ("evaluate", folder / "classifier", half_right, "--precision", 0.9)
    result = run(*words)
    assert "Threshold for a precision of 90 %: half.tsv  n = 12" in result.stdout
    assert "Only 6 answers carry this precision; to know it well would take 50." in result.stdout
    choice = json.loads(run(*words, "--json").stdout)["half.tsv"]["threshold_choice"]
    threshold = f"{choice['chosen']['threshold']:g}"
    assert f"  manyheads predict {folder / 'classifier'} --threshold {threshold}\n" in result.stdout
    assert (choice["chosen"]["precision"], choice["chosen"]["coverage"], choice["chosen"]["n_answers"]) == (100, 50, 6)
    assert choice["precision"]["low"] < 60
    card = json.loads(run("evaluate", *words[1:3], "--threshold", threshold, "--json").stdout)["half.tsv"]
    scores = {score["name"]: score["value"] for score in card["scores"]}
    assert (card["n_abstained"], scores["accuracy where answered"]) == (6, 100)
    assert "threshold_choice" not in card


def test_evaluate_says_that_a_precision_is_not_reached(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.tsv").write_text("text\tlabel\n" + "".join(f"{text}\tother\n" for text, _ in ROWS), "utf-8")
    result = run("evaluate", folder / "classifier", tmp_path / "wrong.tsv", "--precision", 0.95)
    assert (
        "No threshold reaches a precision of 95 % on these rows. The highest is 0.0 %, of 12 answers" in result.stdout
    )
    assert "manyheads predict" not in result.stdout


def test_evaluate_chooses_the_threshold_of_spans(folder: Path) -> None:
    words = ("evaluate", folder / "tagger", folder / "rows.conll", "--precision", 0.01)
    assert "spans kept" in run(*words).stdout
    choice = json.loads(run(*words, "--json").stdout)["rows.conll"]["threshold_choice"]
    n_spans = sum(len(found.spans) for found in load(folder / "tagger").predictions(["Ada sleeps .", "Ben sings"]))
    assert choice["rows"][0]["n_answers"] == n_spans
