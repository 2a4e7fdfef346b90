"""`examine`: what is wrong with a recipe, a run or a bundle, whichever it is given."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from manyheads.data import CleanSettings
from manyheads.data.cleaning import tolerate_bad_lines
from manyheads.doctor import data_checks, language_checks, overfit_probe, training_checks
from manyheads.doctor.corpus_stats import CorpusStats, Source, collect_stats
from manyheads.doctor.findings import Finding, merge_good
from manyheads.doctor.misalignment import check_alignment
from manyheads.doctor.model_checks import check_bundle, check_model, load_snapshot
from manyheads.errors import DataError, RecipeError
from manyheads.run import Corpus, DataSettings, MixSettings, Recipe, read_recipe
from manyheads.storage import MANIFEST
from manyheads.tasks import Seq2SeqSettings
from manyheads.text.files import OnBad
from manyheads.text.readers import Pair, Row, read_pairs

Kind = Literal["recipe", "run", "bundle"]

_BUILTIN_PAIRS = 20_000  # of our own corpus a part is enough


def detect_kind(path: Path) -> Kind:
    """What a path holds: a file is a recipe, a folder with a log a run, a sealed folder a bundle."""
    if path.is_file():
        return "recipe"
    if not path.is_dir():
        raise DataError(f"{path}: there is no such file or folder. Give a recipe (.toml), a run's folder or a bundle.")
    if (path / training_checks.LOG).is_file():
        return "run"
    if (path / MANIFEST).is_file() or (path / "bundle.json").is_file():
        return "bundle"
    raise DataError(
        f"{path} is neither a run (it has no {training_checks.LOG}) nor a bundle (it has no {MANIFEST})."
        " Give a recipe (.toml), a run's folder or a bundle."
    )


def examine(path: Path, *, quick: bool = False) -> Iterator[Finding]:
    """The findings, as they come; `quick` leaves out what needs training."""
    examiners: dict[Kind, Callable[[], Iterable[Finding]]] = {
        "recipe": partial(_examine_recipe, path, quick=quick),
        "run": partial(_examine_run, path),
        "bundle": partial(check_bundle, path),
    }
    yield from examiners[detect_kind(path)]()


def _examine_recipe(path: Path, *, quick: bool) -> Iterator[Finding]:
    try:
        recipe = read_recipe(path)
    except RecipeError as error:
        for fault in error.faults:
            yield Finding(
                "recipe", "bad", fault, (), "Mend it as said; then doctor can look at the data. 请先修正配方。"
            )
        return
    yield Finding("recipe", "good", f"{path.name} holds together.")
    if not isinstance(recipe.task, Seq2SeqSettings):
        yield Finding("data", "warning", f"doctor does not examine the data of task.kind = {recipe.task.kind} yet.")
        return
    all_stats = [collect_stats(source, clean_settings(recipe)) for source in pair_sources(recipe)]
    yield from check_data(all_stats, (recipe.task.source_language, recipe.task.target_language), clean_settings(recipe))
    if quick:
        return
    train = all_stats[0]
    probe = overfit_probe.make_probe(recipe, islice(train.source.read(), len(train)))
    if probe is not None:
        finding = overfit_probe.check_one_batch(probe)
        yield finding
        if finding.verdict != "bad":  # a model that cannot learn says nothing of the rate
            yield overfit_probe.check_learning_rate(probe, recipe.train)


def check_data(all_stats: list[CorpusStats], languages: tuple[str, str], clean: CleanSettings) -> Iterator[Finding]:
    """All data checks of a recipe's sets; the training set comes first."""
    train, *held = all_stats
    yield from [data_checks.check_readable(stats) for stats in all_stats]
    there = [stats for stats in all_stats if len(stats)]
    if not len(train):
        return
    yield data_checks.check_duplicates(train, clean)
    yield data_checks.check_many_targets(train)
    yield from merge_good([data_checks.check_leakage(train, stats, clean) for stats in held if len(stats)])
    checks: tuple[Callable[[CorpusStats], Finding], ...] = (
        data_checks.check_blank,
        data_checks.check_ratio,
        data_checks.check_long_lines,
        partial(data_checks.check_encoding, clean=clean),
        data_checks.check_invisible,
        data_checks.check_full_width,
        check_alignment,
        partial(language_checks.check_declared_languages, languages=languages),
        partial(language_checks.check_mixed_languages, train=train),
        language_checks.check_untranslated,
    )
    for check in checks:
        yield from merge_good([check(stats) for stats in there])


def pair_sources(recipe: Recipe) -> list[Source]:
    """The sets of pairs that a recipe names, the training set first."""
    data = recipe.data
    if data.builtin:
        corpus = Corpus(data, recipe.seed)
        sets = {"train": corpus.train, "valid": corpus.valid, "test": lambda: corpus.tests()["test"]}
        return [Source(name, partial(_first, read)) for name, read in sets.items()]
    held = {name: MixSettings(files=files) for name, files in (("valid", data.valid), ("test", data.test)) if files}
    skip_bad_lines = recipe.clean.drop_bad_encoding
    corpora = [_source("train", corpus, data, skip_bad_lines=skip_bad_lines) for corpus in data.corpora]
    train = corpora[0] if len(corpora) == 1 else _mixed(corpora)
    return [train, *(_source(name, corpus, data) for name, corpus in held.items())]


def _mixed(sources: list[Source]) -> Source:
    """All corpora of a mix as one; its lines are counted through."""
    return Source("train", lambda: chain.from_iterable(source.read() for source in sources))


def _source(name: str, corpus: MixSettings, data: DataSettings, *, skip_bad_lines: bool = False) -> Source:
    """The files of a corpus; a forgiving reader bears a few lines that are not UTF-8, as training does."""
    files = corpus.files
    source, target = corpus.source_column or data.source_column, corpus.target_column or data.target_column
    if data.mix and len(files) == 2:
        source, target = corpus.source_column, corpus.target_column
    read = partial(_read, files, source or None, target or None)
    return Source(
        name,
        partial(tolerate_bad_lines, read) if skip_bad_lines else partial(read, None),
        tuple(Path(file).name for file in files),
        first_line=2 if _has_header(files, source, target) else 1,
    )


def _read(files: tuple[str, ...], source: str | None, target: str | None, on_bad: OnBad | None) -> Iterable[Pair]:
    return read_pairs(files, source_column=source, target_column=target, on_bad=on_bad)


def _has_header(files: tuple[str, ...], source: str, target: str) -> bool:
    """Whether the first line names the columns; of CSV it does unless they are told by number."""
    endings = {ending.lower() for ending in Path(files[0]).suffixes[-2:]}
    is_table = ".csv" in endings or (".tsv" in endings and bool(source))
    return len(files) == 1 and is_table and not (source.isdecimal() and target.isdecimal())


def clean_settings(recipe: Recipe) -> CleanSettings:
    """What training leaves out by itself; nothing of the built-in corpus."""
    if recipe.data.builtin:
        return CleanSettings(max_ratio=0.0, drop_bad_encoding=False, drop_leaked=False, drop_duplicates=False)
    return recipe.clean


def _first(read: Callable[[], Iterable[Row]]) -> Iterator[Pair]:
    return ((source, target) for source, target in islice(read(), _BUILTIN_PAIRS))


def _examine_run(folder: Path) -> Iterator[Finding]:
    log = training_checks.read_log(folder)
    yield training_checks.check_log(log)
    for check in (
        training_checks.check_running,
        training_checks.check_finite,
        training_checks.check_divergence,
        training_checks.check_progress,
        training_checks.check_overfitting,
        training_checks.check_samples,
    ):
        yield check(log)
    yield training_checks.check_checkpoints(folder)
    if (folder / "bundle").is_dir():
        yield from check_bundle(folder / "bundle")
    elif (snapshot := load_snapshot(folder)) is not None:
        yield from check_model(snapshot)
