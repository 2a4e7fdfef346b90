"""`manyheads predict`: one output line for each input line."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE

import pytest
from click.testing import CliRunner

from manyheads.bundle import Bundle, load
from manyheads.cli.predict import predict
from manyheads.decode import DecodeSettings
from manyheads.tasks import Classify, ClassifySettings, Language, LanguageSettings
from manyheads.text.tokens.seen_words import SeenWords

from cli.conftest import Run
from tasks.makers import TOKENIZERS, make_model
from tasks.small import make_task

LINES = ["The dog sleeps.", "", "A small cat reads the book.", "  "]
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
BLANK = "Warning: 2 lines have no text (lines 2, 4): their output lines are empty.\n"


def test_standard_input_gives_one_line_each(manyheads: Run, bundle_folder: Path, untrained: Bundle) -> None:
    done = manyheads("predict", bundle_folder, stdin="\n".join(LINES) + "\n")
    assert (done.returncode, done.stderr) == (0, BLANK)
    assert done.stdout.split("\n")[:-1] == untrained.predict(LINES)
    assert done.stdout.split("\n")[1] == ""


def test_a_slow_writer_gets_each_answer_before_it_writes_on(bundle_folder: Path, untrained: Bundle) -> None:
    """As with `tail -f log | manyheads predict BUNDLE`; without an answer, this test would never end."""
    command = [sys.executable, "-m", "manyheads", "predict", str(bundle_folder)]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=os.environ | ONE_THREAD) as process:
        assert process.stdin and process.stdout and process.stderr
        for line, answer in zip(LINES[:3], untrained.predict(LINES[:3]), strict=True):
            process.stdin.write(f"{line}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline().decode() == f"{answer}\n"
            if not line:  # remarks do not wait for the end either
                assert "1 line has no text (line 2)" in process.stderr.readline().decode()
        process.stdin.close()
        assert process.stdout.read() == b""
    assert process.returncode == 0


def test_file_to_file(manyheads: Run, bundle_folder: Path, untrained: Bundle, tmp_path: Path) -> None:
    (tmp_path / "in.en").write_text("\r\n".join(LINES), encoding="utf-8-sig")
    done = manyheads("predict", bundle_folder, "in.en", "-o", "out.zh", "--greedy")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", BLANK)
    assert (tmp_path / "out.zh").read_text("utf-8").split("\n")[:-1] == untrained.predict(LINES, method="greedy")


def test_output_to_the_input_a_folder_or_a_device(manyheads: Run, bundle_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("The dog sleeps.\n", "utf-8")
    (tmp_path / "link").symlink_to("text")
    for output, message in (
        ("text", "is the file being read"),
        ("link", "is the file being read"),
        (".", "is a folder"),
    ):
        done = manyheads("predict", bundle_folder, "text", "-o", output)
        assert done.returncode == 1
        assert message in done.stderr
    assert (tmp_path / "text").read_text("utf-8") == "The dog sleeps.\n"
    assert manyheads("predict", bundle_folder, "text", "-o", "/dev/null").returncode == 0
    assert Path("/dev/null").is_char_device()
    assert list(tmp_path.glob("*.partial")) == []


def test_partial_output_is_kept_after_an_error(manyheads: Run, bundle_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"The dog sleeps.\n" * 1001 + b"\xff\n")
    (tmp_path / "out").write_text("precious")
    done = manyheads("predict", bundle_folder, "text", "-o", "out", "--greedy")
    assert done.returncode == 1
    (partial,) = tmp_path.glob("*.partial")
    assert partial.read_text("utf-8").count("\n") == 1000
    assert str(partial) in done.stderr
    assert (tmp_path / "out").read_text() == "precious"


@pytest.fixture
def summary_folder(untrained: Bundle, tmp_path: Path) -> Path:
    task = replace(untrained.task, settings=replace(untrained.task.settings, purpose="summary"))
    replace(untrained, task=task).save(tmp_path / "summary")
    return tmp_path / "summary"


def test_too_long_line_is_reported_and_its_output_is_empty(manyheads: Run, summary_folder: Path) -> None:
    done = manyheads("predict", summary_folder, stdin="The dog sleeps.\n" + "cat " * 200 + "\nThe dog sleeps.\n")
    assert done.returncode == 1
    first, second, third, end = done.stdout.split("\n")
    assert first == third != ""
    assert second == end == ""
    assert "Line 2 has" in done.stderr
    assert "this model reads at most 39" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_long_line_is_translated_in_parts(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("predict", bundle_folder, "--json", "--greedy", stdin="The dog sleeps. " * 20 + "\n")
    assert done.returncode == 0
    payload = json.loads(done.stdout)
    assert len(payload["parts"]) == 20
    answers = {payload["candidates"][0]["text"][start:end] for _, _, start, end in payload["parts"]}
    [alone] = json.loads(manyheads("predict", bundle_folder, "--json", "--greedy", stdin="The dog sleeps.\n").stdout)[
        "candidates"
    ]
    assert answers == {alone["text"]}


def test_n_best_and_json(manyheads: Run, bundle_folder: Path) -> None:
    rows = manyheads("predict", bundle_folder, "--beam", 3, "--n-best", 2, stdin="The dog sleeps.\n").stdout
    numbers, scores, _ = zip(*(row.split("\t") for row in rows.splitlines()), strict=True)
    assert numbers == ("1", "1")
    assert float(scores[0]) >= float(scores[1])
    payload = json.loads(manyheads("predict", bundle_folder, "--json", stdin="The dog sleeps.\n").stdout)
    assert payload["line"] == 1
    assert payload["candidates"][0]["log_probability"] < 0


def test_json_reports_a_too_long_line(manyheads: Run, summary_folder: Path) -> None:
    done = manyheads("predict", summary_folder, "--json", stdin="cat " * 200 + "\n")
    payload = json.loads(done.stdout)
    assert payload["candidates"] == []
    assert payload["error"].startswith("Line 1 has")


def test_unseen_words_are_named(manyheads: Run, untrained: Bundle, tmp_path: Path) -> None:
    replace(untrained, seen_words=SeenWords.of(["The dog sleeps."])).save(tmp_path / "words")
    options = ("--greedy", "--json", "--no-repeat-ngram", "1")
    done = manyheads("predict", tmp_path / "words", *options, stdin="The Xylophon\nthe dog\na xylophon 17\n")
    assert done.returncode == 0
    assert done.stderr == "Warning: 2 words did not occur in training: Xylophon (lines 1, 3), a (line 3).\n"
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["unseen_words"] for row in rows] == [["Xylophon"], [], ["a", "xylophon"]]
    assert [row["warnings"] for row in rows] == [[], [], []]


def test_lines_in_another_language_are_named(manyheads: Run, bundle_folder: Path) -> None:
    options = ("--greedy", "--no-repeat-ngram", "1", "--lang", "en")
    done = manyheads("predict", bundle_folder, *options, stdin="The dog\n猫在睡觉\n12:30\n")
    assert done.stderr == "Warning: 1 line is not in the language that this model reads (line 2).\n"


@pytest.mark.parametrize("settings", [ClassifySettings(), ClassifySettings(multi_label=True)])
def test_blank_line_has_no_label(tmp_path: Path, settings: ClassifySettings) -> None:
    rows = [("a good film", "good"), ("a bad film", "bad")] * 20
    Bundle(make_task(Classify, settings, rows), DecodeSettings(), {}, {}).save(tmp_path / "bundle")
    done = CliRunner().invoke(predict, [str(tmp_path / "bundle")], input="a good film\n\n\u200b \t\na bad film\n")
    assert [bool(line) for line in done.stdout.split("\n")[:-1]] == [True, False, False, True]
    assert done.stderr == "Warning: 2 lines have no text (lines 2, 3): their output lines are empty.\n"
    done = CliRunner().invoke(predict, [str(tmp_path / "bundle"), "--json"], input="\na bad film\n")
    first, second = map(json.loads, done.stdout.splitlines())
    assert {name: first[name] for name in ("line", "source", "labels", "probability", "probabilities", "note")} == {
        "line": 1,
        "source": "",
        "labels": [],
        "probability": None,
        "probabilities": {},
        "note": "The text is blank.",
    }
    assert "note" not in second
    assert done.stderr == "Warning: 1 line has no text (line 1): its output line is empty.\n"
    assert load(tmp_path / "bundle").predict([""]) == [""]


def test_language_model_starts_a_text_at_a_blank_line(tmp_path: Path) -> None:
    tokenizer = TOKENIZERS["bpe"]
    task = Language.create(make_model(tokenizer, "decoder"), tokenizer, LanguageSettings())
    bundle = Bundle(task, DecodeSettings(method="greedy", max_new_tokens=3), {}, {})
    bundle.save(tmp_path / "bundle")
    done = CliRunner().invoke(predict, [str(tmp_path / "bundle")], input="\n")
    assert (done.stdout, done.stderr) == (bundle.predict([""])[0] + "\n", "")
    assert done.stdout.strip()


def test_samples_depend_on_the_seed(manyheads: Run, bundle_folder: Path) -> None:
    def sample(seed: int) -> str:
        return manyheads("predict", bundle_folder, "--sample", "--seed", seed, stdin="The dog sleeps.\n").stdout

    assert sample(1) == sample(1) != sample(2)


@pytest.mark.parametrize(
    ("words", "stdin", "code", "message"),
    [
        (["nowhere"], b"x\n", 1, "Error: nowhere: there is no such folder."),
        (["BUNDLE", "missing.en"], b"", 1, "missing.en"),
        (["BUNDLE"], b"good\n\xff\xfe bad\n", 1, "line 2"),
        (["BUNDLE", "--temperature", "0.5"], b"x\n", 2, "--seed are for --sample"),
        (["BUNDLE", "--greedy", "--beam", "3"], b"x\n", 2, "exclude one another"),
        (["BUNDLE", "--beam", "2", "--n-best", "5"], b"x\n", 1, "decode.n_best = 5 is more than decode.beam = 2"),
        (
            ["BUNDLE", "-o", "no/such/folder/out.zh"],
            b"x\n",
            1,
            "Error: no/such/folder/out.zh: the folder no/such/folder does not exist.",
        ),
        (["BUNDLE", "--device", "tpu"], b"x\n", 1, 'device = "tpu" is not available on this machine'),
    ],
)
def test_bad_input(
    manyheads: Run, bundle_folder: Path, words: list[str], stdin: bytes, code: int, message: str
) -> None:
    done = manyheads("predict", *(bundle_folder if word == "BUNDLE" else word for word in words), stdin=stdin)
    assert done.returncode == code
    assert message in done.stderr


def test_no_input_gives_no_output(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("predict", bundle_folder, stdin="")
    assert (done.returncode, done.stdout) == (0, "")


def test_damaged_bundle_is_an_error_of_one_line(manyheads: Run, bundle_folder: Path) -> None:
    weights = bundle_folder / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    weights.write_bytes(content)
    done = manyheads("predict", bundle_folder, stdin="x\n")
    assert done.returncode == 1
    assert "weights.safetensors is damaged" in done.stderr
    assert len(done.stderr.splitlines()) == 1
