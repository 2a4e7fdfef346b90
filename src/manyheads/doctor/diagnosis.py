"""`examine`: run the checks that apply to a recipe, a run folder or a bundle."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from manyheads.data import CleanSettings
from manyheads.doctor import data_checks, language_checks, overfit_probe, training_checks
from manyheads.doctor.corpus_stats import CorpusStats, Source, collect_stats
from manyheads.doctor.findings import Finding, merge_good
from manyheads.doctor.misalignment import check_alignment
from manyheads.doctor.model_checks import check_bundle, check_model, load_snapshot
from manyheads.errors import DataError, RecipeError
from manyheads.language import pick
from manyheads.run import Corpus, MixSettings, Recipe, RunFolder, read_recipe
from manyheads.storage import MANIFEST
from manyheads.text.readers import Pair, Row

Kind = Literal["recipe", "run", "bundle"]

_BUILTIN_PAIRS = 20_000  # a part of the built-in corpus is enough


def detect_kind(path: Path) -> Kind:
    """Return what a path is: a file is a recipe, a folder with a log a run, a folder with a manifest a bundle."""
    if path.is_file():
        return "recipe"
    if not path.is_dir():
        raise DataError(f"{path}: there is no such file or folder. Give a recipe (.toml), a run's folder or a bundle.")
    if RunFolder(path).log_file.is_file():
        return "run"
    if (path / MANIFEST).is_file() or (path / "bundle.json").is_file():
        return "bundle"
    raise DataError(
        f"{path} is neither a run (it has no {RunFolder(path).log_file.name}) nor a bundle (it has no {MANIFEST})."
        " Give a recipe (.toml), a run's folder or a bundle."
    )


def examine(path: Path, *, quick: bool = False) -> Iterator[Finding]:
    """Yield the findings; `quick` skips the checks that train."""
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
            fix = pick("Fix the recipe; the data is checked after that.", "请先修正配方，之后才能检查数据。")
            yield Finding("recipe", "bad", fault, (), fix)
        return
    yield Finding("recipe", "good", pick(f"{path.name} is valid.", f"{path.name} 有效。"))
    yield training_checks.check_warmup(recipe.train)
    languages = recipe.task_class.languages(recipe.task)
    if not languages:
        yield Finding(
            "data",
            "warning",
            pick(
                f"the data checks apply to pairs of texts; the data of task.kind = {recipe.task.kind} is not checked.",
                f"数据检查只适用于文本对；task.kind = {recipe.task.kind} 的数据未检查。",
            ),
        )
        return
    all_stats = [collect_stats(source, clean_settings(recipe)) for source in pair_sources(recipe)]
    source, target = languages
    yield from check_data(all_stats, (source, target), clean_settings(recipe))
    if quick:
        return
    train = all_stats[0]
    probe = overfit_probe.make_probe(recipe, islice(train.source.read(), len(train)))
    if probe is not None:
        finding = overfit_probe.check_one_batch(probe)
        yield finding
        if finding.verdict != "bad":  # the rate cannot be checked on a model that does not learn
            yield overfit_probe.check_learning_rate(probe, recipe.train)


def check_data(all_stats: list[CorpusStats], languages: tuple[str, str], clean: CleanSettings) -> Iterator[Finding]:
    """Run all data checks on a recipe's sets; the training set comes first."""
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
    """Return the sets of pairs that a recipe names, the training set first."""
    corpus = Corpus.of(recipe)
    if recipe.data.builtin:
        sets = {"train": corpus.train, "valid": corpus.valid, "test": lambda: corpus.tests()["test"]}
        return [Source(name, partial(_first_pairs, read)) for name, read in sets.items()]
    return [_merged([_source(corpus, name, part) for part in parts]) for name, parts in corpus.given_sets().items()]


def _merged(sources: list[Source]) -> Source:
    """Return the corpora of a mix as one source with consecutive line numbers."""
    if len(sources) == 1:
        return sources[0]
    return Source(sources[0].name, lambda: chain.from_iterable(source.read() for source in sources))


def _source(corpus: Corpus, name: str, part: MixSettings) -> Source:
    """Return a source of some files; as in training, bad lines are skipped only in the training set."""
    skip_bad_lines = name == "train" and corpus.clean.drop_bad_encoding
    return Source(
        name,
        lambda: _pairs(corpus.read(part, skip_bad_lines=skip_bad_lines)),
        tuple(Path(file).name for file in part.files),
        first_line=2 if _has_header(part.files, corpus.columns(part.files, part)) else 1,
    )


def _has_header(files: tuple[str, ...], columns: Mapping[str, str]) -> bool:
    """Return whether the first line names the columns; in CSV it does unless the columns are given by number."""
    suffixes = {suffix.lower() for suffix in Path(files[0]).suffixes[-2:]}
    is_table = ".csv" in suffixes or (".tsv" in suffixes and bool(columns))
    are_numbers = bool(columns) and all(column.isdecimal() for column in columns.values())
    return len(files) == 1 and is_table and not are_numbers


def clean_settings(recipe: Recipe) -> CleanSettings:
    """Return the cleaning rules that training applies."""
    return Corpus.of(recipe).cleaning


def _first_pairs(read: Callable[[], Iterable[Row]]) -> Iterator[Pair]:
    return _pairs(islice(read(), _BUILTIN_PAIRS))


def _pairs(rows: Iterable[Row]) -> Iterator[Pair]:
    return ((source, target) for source, target in rows)


def _examine_run(folder: Path) -> Iterator[Finding]:
    run_folder = RunFolder(folder)
    run_folder.check_format()
    log = training_checks.read_log(folder)
    yield training_checks.check_log(log)
    if log.settings is not None:
        yield training_checks.check_warmup(log.settings)
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
    if run_folder.bundle.is_dir():
        yield from check_bundle(run_folder.bundle)
    elif (snapshot := load_snapshot(folder)) is not None:
        yield from check_model(snapshot)
