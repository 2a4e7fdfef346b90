"""`manyheads predict --shards`: the bytes of `predict`, whatever is killed."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import pytest
from click.testing import CliRunner, Result

from manyheads.bulk import local_workers
from manyheads.bulk.line_shards import Shard
from manyheads.bulk.local_workers import LocalWorkers
from manyheads.bulk.shard_schedule import AnswerShard, Outcome, WorkerTask, answer_shard, outcome_of
from manyheads.bundle import Bundle
from manyheads.cli import predict as predict_module
from manyheads.cli import predict_shards
from manyheads.cli.predict import predict
from manyheads.decode import DecodeSettings
from manyheads.tasks import Classify, ClassifySettings, Language, LanguageSettings

from tasks.makers import TOKENIZERS, make_model
from tasks.small import make_task

BATCH = 4
TEXTS = ["", " ", "", "", "The dog sleeps.", "A small cat reads the book.", "", "The <b>dog</b> sleeps.", "Xylophon"]
ROWS = [(f"the {noun} was {word}", word) for noun in ("film", "hotel", "meal") for word in ("great", "awful")]


answer_here = answer_shard


class InlineWorkers:
    """Answers shards in this process, the last first."""

    n_slots = 3

    def __init__(self, task: WorkerTask, n_processes: int) -> None:
        self.task, self.answer = task, task.open_answers(task.spec)
        self.queue: deque[Shard] = deque()

    def submit(self, shard: Shard) -> None:
        self.queue.append(shard)

    def wait(self) -> Sequence[Outcome]:
        shard = self.queue.pop()
        return [outcome_of(shard, answer_here(self.task, self.answer, shard))]

    def close(self) -> None:
        pass


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer small batches without other processes."""
    monkeypatch.setattr("manyheads.bulk.local_workers.LocalWorkers", InlineWorkers)
    for module in (predict_module, predict_shards):
        monkeypatch.setattr(module, "BATCH_LINES", BATCH)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("classifier") / "bundle"
    task = make_task(Classify, ClassifySettings(), ROWS)
    Bundle(task, DecodeSettings(), {"data": {"train": ["t.tsv"]}, "task": {"kind": "classify"}}).save(path)
    return path


def run(*words: object) -> Result:
    return CliRunner().invoke(predict, [str(word) for word in words])


def write_inputs(folder: Path, *, repeats: int = 2) -> list[Path]:
    files = [folder / "one.txt", folder / "two.txt"]
    files[0].write_text("\n".join(TEXTS * repeats), "utf-8-sig")  # no line end at the end
    files[1].write_bytes("\r\n".join(TEXTS[:5]).encode() + b"\r\n")
    return files


def check_equal(folder: Path, bundle: Path, *options: str, exit_code: int = 0) -> None:
    files = write_inputs(folder)
    plain = run(bundle, *files, "-o", folder / "plain", *options)
    done = run(bundle, *files, "--shards", folder / "job", "--shard-lines", BATCH, *options, "-o", folder / "joined")
    assert (plain.exit_code, done.exit_code) == (exit_code, exit_code), (plain.output, done.output, done.exception)
    suffix = ".jsonl" if "--json" in options else ".txt"
    shards = sorted((folder / "job").glob(f"*{suffix}"))
    assert len(shards) == 6
    expected = (folder / "plain").read_bytes()
    assert b"".join(shard.read_bytes() for shard in shards) == (folder / "joined").read_bytes() == expected
    assert expected.count(b"\n") >= 23
    # The remarks are those of one process as well.
    assert done.stderr.splitlines()[:-1] == plain.stderr.splitlines()


@pytest.mark.parametrize(
    "options",
    [
        ("--greedy", "--json"),
        ("--beam", "3", "--n-best", "2"),
        ("--sample", "--seed", "3", "--max-new-tokens", "4"),
        ("--greedy", "--align"),
        ("--greedy", "--align", "--json"),
        ("--greedy", "--format", "html"),
        ("--greedy", "--glossary", "terms.tsv", "--prefix", "猫"),
    ],
)
def test_translations_are_those_of_one_process(
    inline: None, bundle_folder: Path, tmp_path: Path, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "terms.tsv").write_text("dog\t狗\n", "utf-8")
    check_equal(tmp_path, bundle_folder, *options)


@pytest.mark.parametrize("options", [("--json",), ("--threshold", "0.5")])
def test_labels_are_those_of_one_process(
    inline: None, classifier: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    check_equal(tmp_path, classifier, *options)


def test_samples_of_a_language_model_do_not_depend_on_shards(inline: None, tmp_path: Path) -> None:
    tokenizer = TOKENIZERS["bpe"]
    task = Language.create(make_model(tokenizer, "decoder"), tokenizer, LanguageSettings(), [])
    Bundle(task, DecodeSettings(max_new_tokens=3), {}).save(tmp_path / "bundle")
    check_equal(tmp_path, tmp_path / "bundle", "--sample", "--seed", "5")


def test_too_long_lines_are_reported_with_their_file(inline: None, untrained: Bundle, tmp_path: Path) -> None:
    task = replace(untrained.task, settings=replace(untrained.task.settings, purpose="summary"))
    replace(untrained, task=task).save(tmp_path / "summary")
    (tmp_path / "one").write_text("The dog sleeps.\n" * 3)
    (tmp_path / "two").write_text("The dog sleeps.\n" * 3 + "cat " * 200 + "\n")
    files = (tmp_path / "one", tmp_path / "two")
    plain = run(tmp_path / "summary", *files, "--greedy", "--json", "-o", tmp_path / "plain")
    for _ in range(2):  # the second time, from the records
        done = run(tmp_path / "summary", *files, "--greedy", "--json", "--shards", tmp_path / "job", "--shard-lines", 4)
        assert plain.exit_code == done.exit_code == 1
        assert f"Error: {tmp_path / 'two'}, line 4 has" in plain.stderr
        assert [line for line in done.stderr.splitlines() if line.startswith("Error")] == plain.stderr.splitlines()[:1]
    assert (
        b"".join(shard.read_bytes() for shard in sorted((tmp_path / "job").glob("*.jsonl")))
        == (tmp_path / "plain").read_bytes()
    )


def test_finished_shards_are_skipped_and_damaged_ones_written_again(
    inline: None, classifier: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_inputs(tmp_path)
    command = (classifier, *files, "--shards", tmp_path / "job", "--shard-lines", BATCH)
    assert run(*command).exit_code == 0
    shards = sorted((tmp_path / "job").glob("*.txt"))
    before = [shard.read_bytes() for shard in shards]
    answered: list[int] = []
    monkeypatch.setattr(
        InlineWorkers, "submit", lambda self, shard: (answered.append(shard.number), self.queue.append(shard))
    )
    shards[1].write_bytes(before[1][:-1])
    shards[3].unlink()
    done = run(*command)
    assert answered == [1, 3]
    assert "4 shards were finished before." in done.stderr
    assert [shard.read_bytes() for shard in shards] == before
    assert run(*command).exit_code == 0
    assert answered == [1, 3]
    assert f"23 lines in 6 shards. Join them: cat {tmp_path}/job/*.txt > FILE" in done.stderr


def test_another_bundle_text_or_option_is_refused(
    inline: None, classifier: Path, bundle_folder: Path, tmp_path: Path
) -> None:
    files = write_inputs(tmp_path)
    where = ("--shards", tmp_path / "job", "--shard-lines", BATCH)
    assert run(classifier, *files, *where).exit_code == 0

    def refusal(*words: object) -> str:
        done = run(*words, *where)
        assert done.exit_code == 1
        return str(done.exception)

    assert "has answers of another bundle" in refusal(bundle_folder, *files)
    assert "other options: threshold" in refusal(classifier, *files, "--threshold", "0.9")
    assert "has answers to other files" in refusal(classifier, files[0])
    files[1].write_text("another text\n")
    assert "has answers to other text: two.txt changed" in refusal(classifier, *files)


def test_input_that_cannot_be_divided_is_refused(classifier: Path, bundle_folder: Path, tmp_path: Path) -> None:
    (text := tmp_path / "text").write_text("a\n")
    (page := tmp_path / "page.html").write_text("<p>a</p>\n")
    for words, message in (
        ((classifier, "--shards", "job"), "standard input does not allow. Name files."),
        ((classifier, text, "--shards", "job", "--shard-lines", 1500), "1500 is not a multiple of 1,000"),
        ((classifier, text, "--shards", "job", "--shard-lines", 0), "0 is not a multiple of 1,000"),
        ((bundle_folder, page, "--shards", "job", "--format", "html"), "is a document, not lines of text"),
        ((classifier, "text.gz", "--shards", "job"), "text.gz is compressed"),
        ((classifier, text, "--processes", 2), "are for --shards. Add --shards DIR."),
        ((classifier, text, "-"), "Standard input (-) cannot be combined with files"),
    ):
        done = run(*words)
        assert done.exit_code == 2
        assert message in " ".join(done.stderr.split())
    (tmp_path / "empty").write_text("")
    assert "is empty. Give a file with text." in str(run(classifier, tmp_path / "empty", "--shards", "job").exception)
    assert not (tmp_path / "job").exists()


def test_ray_that_is_not_installed_is_named(classifier: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    (tmp_path / "text").write_text("a\n")
    done = run(classifier, tmp_path / "text", "--shards", tmp_path / "job", "--on", "ray")
    assert str(done.exception) == "--on ray needs Ray, which is not installed: pip install 'manyheads[ray]'."


def test_a_full_disk_is_named_and_the_same_command_continues(
    inline: None, classifier: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_inputs(tmp_path)
    command = (classifier, *files, "--shards", tmp_path / "job", "--shard-lines", BATCH)
    with monkeypatch.context() as patch:
        answered = 0

        def answer_until_full(task: WorkerTask, answer: AnswerShard, shard: Shard) -> dict[str, object]:
            def write(shard: Shard, stream: TextIO) -> dict[str, object]:
                nonlocal answered
                answered += 1
                if answered == 3:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return answer(shard, stream)

            return answer_shard(task, write, shard)

        patch.setattr(sys.modules[__name__], "answer_here", answer_until_full)
        done = run(*command)
    assert isinstance(done.exception, OSError)
    assert (done.exception.errno, Path(done.exception.filename).suffix) == (errno.ENOSPC, ".txt")
    assert len(list((tmp_path / "job").glob("*.txt"))) == 2
    assert run(*command, "-o", tmp_path / "joined").exit_code == 0
    assert run(classifier, *files, "-o", tmp_path / "plain").exit_code == 0
    assert (tmp_path / "joined").read_bytes() == (tmp_path / "plain").read_bytes()


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task/{pid}/children")
    own = [int(one) for one in tasks.read_text().split()] if tasks.exists() else []
    return own + [grandchild for child in own for grandchild in children(child)]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_a_killed_command_leaves_no_process_and_the_next_one_the_same_bytes(
    classifier: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, job = tmp_path / "text", tmp_path / "job"
    text.write_text("".join(f"the film was great {number}\n" for number in range(4000)))
    words = [str(word) for word in (classifier, text, "--shards", job, "--shard-lines", 1000, "--processes", 2)]
    command = [sys.executable, "-m", "manyheads", "predict", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=os.environ | {"OMP_NUM_THREADS": "1"}) as process:
        while not list(job.glob("*.txt")) and process.poll() is None:
            time.sleep(0.01)
        workers = children(process.pid)
        process.kill()
        process.communicate()
    for _ in range(3000):
        if not any(Path(f"/proc/{worker}").exists() for worker in workers):
            break
        time.sleep(0.01)
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]

    n_before = len(list(job.glob("*.txt")))
    assert 1 <= n_before < 4
    killed: list[int] = []
    wait = local_workers.LocalWorkers.wait

    def kill_one_and_wait(self: LocalWorkers) -> Sequence[Outcome]:
        if not killed:
            killed.append(self._workers[0].process.pid or 0)
            os.kill(killed[0], signal.SIGKILL)
        return wait(self)

    monkeypatch.setattr(local_workers.LocalWorkers, "wait", kill_one_and_wait)
    done = run(*words)  # here the first worker is killed at once
    assert done.exit_code == 0, done.output
    assert killed
    assert run(classifier, text, "-o", tmp_path / "plain").exit_code == 0
    assert b"".join(shard.read_bytes() for shard in sorted(job.glob("*.txt"))) == (tmp_path / "plain").read_bytes()
    assert not list(job.glob(".*"))
