"""The first five minutes of a new user: `manyheads quickstart`."""

import ast
import json
import re
import subprocess
from pathlib import Path

import pytest

from manyheads import corpora, load
from manyheads.metrics import quick_score
from manyheads.tasks import Seq2Seq
from manyheads.text.tokens.words import CHINESE_AND_KANA

from cli.conftest import Run, checked, environment_of, new_manyheads, warm_process  # noqa: F401
from cli.warm_process import WarmProcess

ROOT = Path(__file__).parents[2]
ECHO = re.compile(r'echo "(.+)" \\\n +\| manyheads predict')
CHINESE_SENTENCE = re.compile(rf"[{CHINESE_AND_KANA}，、]+[。？！]")
# A model of a few steps repeats one token up to the maximum length, and a thousand such texts take a minute. The tests
# that train a model use the whole corpora, all layers and no limit.
SHORT_CORPORA = """
from manyheads.run import corpus
from manyheads.tasks import TASKS
corpus._BUILTIN_TEST = 60
for task in TASKS.values():
    if getattr(task, "quickstart", None) is not None:
        task.quickstart.recipe.setdefault("data", {})["builtin_rows"] = 5000
        model = task.quickstart.recipe.setdefault("model", {})
        model.update({name: 1 for name in model if name in ("n_encoder_layers", "n_decoder_layers")})
        if task.quickstart.name in ("translate", "generate"):
            task.quickstart.recipe.setdefault("decode", {})["max_new_tokens"] = 5
"""


@pytest.fixture
def short_manyheads(warm_process: WarmProcess, tmp_path: Path) -> Run:  # noqa: F811
    """Return a function that runs `manyheads` on short built-in corpora, with short output."""

    def run(*words: object, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        arguments = [str(word) for word in words]
        return checked(warm_process.run(arguments, stdin.encode(), tmp_path, environment_of(1), before=SHORT_CORPORA))

    return run


def examples_in(printed: str) -> str:
    """Return the lines with examples for the model at hand: from what to predict up to what follows."""
    (found,) = re.findall(r"^Try it:.*?(?=^(?:Try next|Train further):)", printed, re.DOTALL | re.MULTILINE)
    return str(found)


def test_quickstart_runs_runs_again_and_resumes(short_manyheads: Run, tmp_path: Path) -> None:
    first = short_manyheads("quickstart", "--steps", 4, "--direction", "de-en")
    assert (first.returncode, first.stderr) == (0, "")
    bundle = tmp_path / "runs" / "quickstart-de-en" / "bundle"
    for expected in (
        "Deutsch → English",
        "sentence pairs",
        "held-out test",
        "unseen combinations",
        "Try next",
        "words of the built-in corpus, in texts such as",
        "Wer liest das Buch?",
        str(bundle.relative_to(tmp_path)),
    ):
        assert expected in first.stdout
    for page in ("report.html", "lens.html"):
        assert str((bundle.parent / page).relative_to(tmp_path)) in first.stdout
    (suggested,) = re.findall(ECHO, first.stdout)
    assert suggested in (bundle.parent / "lens.html").read_text(encoding="utf-8")
    assert "Look inside" in first.stdout
    before = (bundle / "MANIFEST.sha256").read_bytes()

    again = short_manyheads("quickstart", "--direction", "de-en")
    assert again.returncode == 0
    assert "The model is already trained" in again.stdout
    assert "--overwrite" in again.stdout
    assert "lens.html" in again.stdout
    assert "BLEU" in again.stdout
    assert examples_in(again.stdout) == examples_in(first.stdout)
    assert (bundle / "MANIFEST.sha256").read_bytes() == before

    other = short_manyheads("quickstart", "-o", "runs/quickstart-de-en")
    assert other.returncode == 1
    assert "contains a run of another recipe (data.builtin was de-en, now en-zh" in other.stderr

    longer = short_manyheads("quickstart", "--direction", "de-en", "--steps", 6)
    assert "from step 4" in longer.stdout
    assert "step 6 of 6" in longer.stdout

    assert (bundle / "MANIFEST.sha256").read_bytes() != before
    assert short_manyheads("predict", bundle, stdin="Zwei Katzen schlafen.\n").stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("classify", ("accuracy", "这家酒店不贵。", "init YOUR.csv")),
        ("tag", ("intent accuracy", "Who, what, where, when", "init YOUR.conll")),
        ("generate", ("nats per character", "of 100 such stories are consistent", "--prompt")),
    ],
)
def test_quickstart_of_other_tasks_ends_with_a_demo_and_next_commands(
    short_manyheads: Run,
    tmp_path: Path,
    task: str,
    expected: tuple[str, ...],
) -> None:
    done = short_manyheads("quickstart", "--task", task, "--language", "zh", "--steps", 2, "--plain")
    assert (done.returncode, done.stderr) == (0, "")
    bundle = tmp_path / "runs" / f"quickstart-{task}-zh" / "bundle"
    assert bundle.is_dir()
    for text in (
        *expected,
        "中文",
        "held-out test",
        "unseen combinations",
        "Try next",
        str(bundle.relative_to(tmp_path)),
    ):
        assert text in done.stdout
    again = short_manyheads("quickstart", "--task", task, "--language", "zh")
    assert "The model is already trained" in again.stdout
    assert f"manyheads quickstart --task {task} --language zh --overwrite" in again.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--task", "tag", "--direction", "en-zh"),
            "--direction does not apply to --task tag. Use --language, as in zh.",
        ),
        (("--language", "zh"), "--language does not apply to --task translate. Use --direction, as in en-zh."),
    ],
)
def test_options_that_do_not_apply_are_refused(short_manyheads: Run, arguments: tuple[str, ...], message: str) -> None:
    done = short_manyheads("quickstart", *arguments)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


@pytest.mark.proof
@pytest.mark.parametrize("task", ["classify", "tag", "generate"])
def test_quickstart_trains_a_classifier_a_tagger_and_a_language_model(
    new_manyheads: Run,  # noqa: F811
    tmp_path: Path,
    task: str,
) -> None:
    """Two minutes of training are enough for each built-in corpus."""
    least = {"classify": (98, 85), "tag": (98, 90)}
    done = new_manyheads("quickstart", "--task", task, "-o", task)
    assert done.returncode == 0
    scores = json.loads((tmp_path / task / "bundle" / "bundle.json").read_text("utf-8"))["scores"]
    if task in least:
        assert scores["test"][0]["value"] >= least[task][0]
        assert scores["compositional"][0]["value"] >= least[task][1]
    else:
        consistent = re.search(r"(\d+) of 100 such stories are consistent", done.stdout)
        assert consistent and int(consistent[1]) >= 80


@pytest.mark.slow
def test_quickstart_trains_a_translation_model(new_manyheads: Run, tmp_path: Path) -> None:  # noqa: F811
    """The promise of the README: a held-out BLEU of at least 95. (How long it takes is not tested: machines differ.)"""
    done = new_manyheads("quickstart")
    assert done.returncode == 0
    bundle = tmp_path / "runs" / "quickstart" / "bundle"
    scores = json.loads((bundle / "bundle.json").read_text("utf-8"))["scores"]
    assert scores["test"][0]["name"] == "BLEU"
    assert scores["test"][0]["value"] >= 95
    assert scores["compositional"][0]["value"] >= 80
    model = load(bundle)
    # What the README shows is Chinese; the words depend on the processor that trained the model.
    readme = (ROOT / "README.md").read_text("utf-8")
    (texts,) = re.findall(r"^print\(model\.predict\((\[\".+?\])\)\)", readme, re.MULTILINE)
    assert all(CHINESE_SENTENCE.fullmatch(answer) for answer in model.predict(ast.literal_eval(texts)))
    stock = Seq2Seq.quickstart.examples
    assert quick_score("chrF", model.predict(stock["en"]), stock["zh"], "zh") >= 60
    sources = [source for source, _ in corpora.pairs("en", "zh", "test", 200)]
    assert model.predict(sources) == model.predict(sources, repetition_guard=False)
    # The quickstart suggests what this model translates without a warning,
    (sentence,) = re.findall(ECHO, done.stdout)
    answer = new_manyheads("predict", bundle, stdin=f"{sentence}\n")
    assert answer.stderr == ""
    assert CHINESE_SENTENCE.fullmatch(answer.stdout.strip())
    # and a head whose absence changes a word of a translation.
    example = model.visible_ablation()
    assert model.predict([example.text]) == [example.answer]
    assert model.ablate([example.head]).predict([example.text]) == [example.without]
    assert example.answer != example.without
    assert len(example.before) <= 4 and len(example.after) <= 4  # one word, not a phrase
    examples = examples_in(done.stdout)
    for shown in (example.text, example.answer, example.without, f"--off {example.head}"):
        assert shown in examples
    assert examples_in(new_manyheads("quickstart").stdout) == examples
