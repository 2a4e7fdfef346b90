"""Shape and type checks for all tests, and the small recipe and bundle that tests share."""

import gc

from jaxtyping import install_import_hook

gc.disable()  # until all tests are collected: a third of that time went to looking for garbage among modules
# beartype enforces the jaxtyping annotations of all packages with tensors and arrays. The hook must be installed before
# they are imported. The other packages rely on mypy: checking each call would make the corpora ten times slower.
install_import_hook(
    [f"manyheads.{package}" for package in ("model", "decode", "data", "tasks", "training")], "beartype.beartype"
)

import os  # noqa: E402
import random  # noqa: E402
import signal  # noqa: E402
from collections import Counter  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from contextlib import suppress  # noqa: E402
from multiprocessing import forkserver  # noqa: E402
from pathlib import Path  # noqa: E402

import hypothesis  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from filelock import FileLock  # noqa: E402

from manyheads import corpora  # noqa: E402
from manyheads.bundle import Bundle  # noqa: E402
from manyheads.decode import DecodeSettings  # noqa: E402
from manyheads.decode.native.loading import library  # noqa: E402
from manyheads.errors import EngineError  # noqa: E402
from manyheads.metrics import Score  # noqa: E402
from manyheads.model import ModelSettings, Transformer  # noqa: E402
from manyheads.run import Recipe  # noqa: E402
from manyheads.settings import to_table  # noqa: E402
from manyheads.tasks import Seq2Seq, Seq2SeqSettings  # noqa: E402
from manyheads.text.tokens.tokenizer import Tokenizer, TokenizerSettings  # noqa: E402

from serve.browser_fixtures import browser, shared_folder  # noqa: E402, F401

# A background job starts with SIGINT ignored, and so would every process that a test starts and sends a SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)
torch.set_num_threads(1)  # a second thread would slow down tensors as small as those of tests
hypothesis.settings.register_profile("tests", deadline=None)  # the clock of a busy machine says nothing
hypothesis.settings.load_profile("tests")


def small_table(**changes: object) -> dict[str, object]:
    """A recipe that trains in seconds; `changes` replace whole sections."""
    table: dict[str, object] = {
        "data": {"builtin": "en-zh", "builtin_rows": 1000},
        "tokenizer": {"vocab_size": 1500},
        "model": {"width": 16, "n_heads": 2, "n_encoder_layers": 1, "n_decoder_layers": 1, "max_length": 64},
        "train": {
            "steps": 6,
            "batch_tokens": 500,
            "warmup": 2,
            "validate_every": 3,
            "save_every": 2,
            "average_snapshots": 2,
        },
        "decode": {"method": "greedy", "max_new_tokens": 3},
    }
    return table | changes


# What tests fork, beside what they name themselves. The first optimizer of a process imports torch._dynamo, which takes
# longer than a small training.
_FORKED = (
    "manyheads.cli.rendering.progress",
    "manyheads.cli.train",
    "manyheads.run",
    "manyheads.serve.service.worker",
    "torch._dynamo",
)

# Tests without the marker `slow` that take more than ten seconds.
_LONG = frozenset(
    {
        "test_a_killed_sweep_ends_with_the_same_rows_and_leaves_no_process",
        "test_a_server_shows_nothing_of_the_owner",
        "test_a_server_that_shares_examples_shows_them",
        "test_a_thousand_classes",
        "test_every_variant_generates_the_same_tokens",
        "test_quickstart_of_other_tasks_ends_with_a_demo_and_next_commands",
        "test_quickstart_runs_runs_again_and_resumes",
        "test_same_seeds_give_the_same_numbers_in_any_number_of_processes",
        "test_signal_saves_and_shows_how_to_resume",
        "test_signal_while_scoring_is_obeyed_at_once",
        "test_train_then_evaluate",
        "test_two_files_become_a_recipe_that_trains",
    }
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--shuffle`: no test may depend on what ran before it."""
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run files, and the tests of each, in a random order")


def pytest_xdist_auto_num_workers() -> int:
    """Start one process more than there are cores: tests also wait, for servers and for the browser."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run slow tests first, then long ones: as the last ones they would leave all but one process idle."""
    if (seed := config.getoption("shuffle")) is not None:
        files = sorted({item.path for item in items})
        random.Random(seed).shuffle(files)
        random.Random(seed).shuffle(items)
        items.sort(key=lambda item: files.index(item.path))
        return

    def order(item: pytest.Item) -> int:
        if item.get_closest_marker("slow") is not None:
            return 0
        return 1 if getattr(item, "originalname", None) in _LONG else 2

    items.sort(key=order)


def pytest_collection_finish() -> None:
    """Exempt all modules and tests from garbage collection: each full one would visit millions of objects."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was skipped and why, as a green run that left out tests would promise too much."""
    reasons: Counter[tuple[str, str, str]] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        kind = "test" if isinstance(report, pytest.TestReport) else "file"  # a whole file that needs a missing package
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[str(Path(report.nodeid.split("::")[0]).parent), kind, reason.removeprefix("Skipped: ")] += 1
    if reasons:
        terminalreporter.section("skipped")
    for (folder, kind, reason), count in sorted(reasons.items()):
        terminalreporter.line(f"{count} {kind}{'s' * (count > 1)} of {folder}: {reason}")


@pytest.fixture(autouse=True, scope="session")
def native_engine(shared_folder: Path) -> Iterator[None]:  # noqa: F811
    """Compile the native engine before any test, so that no process started by a test logs its compilation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(shared_folder / "xdg-cache"))
        with FileLock(shared_folder / "native.lock"), suppress(EngineError):
            library()
        yield


@pytest.fixture(autouse=True, scope="session")
def preloaded_forks() -> Iterator[None]:
    """Let the server process that forks import what any test needs, whichever test starts it: there is only one."""
    set_preload = forkserver.set_forkserver_preload
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forkserver, "set_forkserver_preload", lambda names: set_preload(sorted({*names, *_FORKED})))
        yield


@pytest.fixture(autouse=True, scope="session")
def shared_cache(shared_folder: Path) -> Iterator[None]:  # noqa: F811
    """Prepare the same text once for all tests: an entry's name contains a digest of all it depends on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MANYHEADS_CACHE", str(shared_folder / "cache"))
        yield


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own: for tests of the cache, and of what a run reports while it prepares text."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("MANYHEADS_CACHE", str(folder))
    return folder


@pytest.fixture(autouse=True)
def short_test_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the built-in test set for runs inside the test process; processes started by tests use all of it."""
    monkeypatch.setattr("manyheads.run.corpus._BUILTIN_TEST", 60)


@pytest.fixture
def recipe_table() -> Callable[..., dict[str, object]]:
    return small_table


@pytest.fixture(scope="session")
def untrained() -> Bundle:
    """A complete bundle with random weights."""
    lines = [text for pair in corpora.pairs("en", "zh", "train", 1000) for text in pair]
    tokenizer = Tokenizer.train(lines, TokenizerSettings(vocab_size=1500))
    torch.manual_seed(5)
    model = Transformer(
        ModelSettings.preset(
            "tiny",
            vocab_size=tokenizer.vocab_size,
            width=16,
            feed_forward_width=32,
            n_encoder_layers=1,
            n_decoder_layers=1,
            max_length=40,
        )
    )
    return Bundle(
        task=Seq2Seq(model.eval(), tokenizer, Seq2SeqSettings(source_language="en", target_language="zh")),
        decode=DecodeSettings(beam=2, max_new_tokens=5),
        recipe=to_table(Recipe.from_table(small_table())),
        scores={"test": [Score("BLEU", 12.5, 11.0, 14.0, "tok:zh")]},
    )


@pytest.fixture
def bundle_folder(untrained: Bundle, tmp_path: Path) -> Path:
    untrained.save(tmp_path / "bundle")
    return tmp_path / "bundle"
