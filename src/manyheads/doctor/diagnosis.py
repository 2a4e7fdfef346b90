"""`examine`: run the checks that apply to a recipe, a run folder or a bundle."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from manyheads.data import CleanSettings
from manyheads.data.cleaning import DUPLICATE, KEPT
from manyheads.data.corpus_cache import Cache
from manyheads.data.encoded import TOO_LONG
from manyheads.doctor import data_checks, language_checks, overfit_probe, training_checks
from manyheads.doctor.corpus_stats import CorpusStats, collect_stats
from manyheads.doctor.misalignment import check_alignment
from manyheads.doctor.model_checks import check_bundle, check_model, load_snapshot
from manyheads.doctor.run_log import read_log
from manyheads.errors import DataError, RecipeError
from manyheads.messages import _
from manyheads.metrics import rows_name
from manyheads.model import Transformer
from manyheads.model.weights import count_parameters
from manyheads.run import Corpus, MixSettings, Recipe, RunFolder, read_recipe
from manyheads.run.preparation import PreparedData, prepare
from manyheads.storage import MANIFEST
from manyheads.tasks.findings import MAX_EXAMPLES, Finding, describe_sizes, merge_good
from manyheads.tasks.task_doctor import Source
from manyheads.text.reading.formats import format_of, is_table
from manyheads.text.reading.readers import Row

Kind = Literal["recipe", "run", "bundle"]

_DATA_SUFFIXES = {".txt", ".conll", ".gz", ".zst", ".xz", ".bz2"}  # beside those of tables
_MAX_PREPARED_BYTES = 100_000_000  # of training files; tokenizing more would take minutes
_BUILTIN_ROWS = 20_000  # a part of the built-in corpus is enough


def detect_kind(path: Path) -> Kind:
    """Return what a path is: a file is a recipe, a folder with a log a run, a folder with a manifest a bundle."""
    if path.is_file():
        if is_table(path) or path.suffix.lower() in _DATA_SUFFIXES:
            raise DataError(
                _("{path} is data, not a recipe. Write a recipe for it first: manyheads init {path}", path=path)
            )
        return "recipe"
    if not path.is_dir():
        raise DataError(
            _("{path}: there is no such file or folder. Give a recipe (.toml), a run's folder or a bundle.", path=path)
        )
    if RunFolder(path).log_file.is_file():
        return "run"
    if (path / MANIFEST).is_file() or (path / "bundle.json").is_file():
        return "bundle"
    raise DataError(
        _(
            "{path} is neither a run (it has no {log}) nor a bundle (it has no {manifest}). Give a recipe "
            "(.toml), a run's folder or a bundle.",
            path=path,
            log=RunFolder(path).log_file.name,
            manifest=MANIFEST,
        )
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
            fix = _("Fix the recipe; the data is checked after that.")
            yield Finding("recipe", "bad", fault, (), fix)
        return
    yield Finding("recipe", "good", _("{name} is valid.", name=path.name))
    yield training_checks.check_warmup(recipe.train)
    all_stats = [collect_stats(source, clean_settings(recipe)) for source in data_sources(recipe)]
    is_whole = all(len(stats) and not stats.read_error for stats in all_stats)
    counts = Corpus.of(recipe).count() if is_whole else None
    yield from check_data(all_stats, recipe, counts)
    if counts is None:
        return
    if quick or _n_training_bytes(recipe) > _MAX_PREPARED_BYTES:
        yield _rows_finding(recipe, counts)
    else:
        yield from _check_prepared(recipe)
    train = all_stats[0]
    if quick or train.source.n_texts < 2:
        return
    probe = overfit_probe.make_probe(recipe, ((row[0], row[1]) for row in islice(train.source.read(), len(train))))
    if probe is not None:
        finding = overfit_probe.check_one_batch(probe)
        yield finding
        if finding.verdict != "bad":  # the rate cannot be checked on a model that does not learn
            yield overfit_probe.check_learning_rate(probe, recipe.train)


def _n_training_bytes(recipe: Recipe) -> int:
    return sum(Path(file).stat().st_size for part in recipe.data.corpora for file in part.files)


def _check_prepared(recipe: Recipe) -> Iterator[Finding]:
    """Train the tokenizer and build the model as a run does, and report rows and sizes."""
    try:
        with TemporaryDirectory(prefix="manyheads-") as folder:
            data = _prepare(recipe, RunFolder(Path(folder) / "run"))
            yield _rows_finding(recipe, data.counts)
            model = replace(recipe.model, vocab_size=data.tokenizer.vocab_size)
            task = recipe.task_class.create(Transformer(model), data.tokenizer, recipe.task, data.encoded.texts)
            sizes = describe_sizes(count_parameters(task.module), data.tokenizer.vocab_size)
            yield Finding("sizes", "good", sizes)
            lengths, n_too_long = data.encoded.lengths.max(axis=1), data.counts.get(TOO_LONG, 0)
            yield from task.doctor.check_lengths(lengths, n_too_long, model, recipe.task)
    except DataError as error:
        yield Finding("rows", "bad", str(error), (), _("Give more or other text."))


def _prepare(recipe: Recipe, folder: RunFolder) -> PreparedData:
    """Prepare the data in a folder of its own, with its own cache."""
    folder.claim()
    stages = prepare(recipe, folder, Cache(folder.path.with_name("cache")))
    while True:
        try:
            next(stages)
        except StopIteration as end:
            prepared: PreparedData = end.value
            return prepared


def _rows_finding(recipe: Recipe, counts: Mapping[str, int]) -> Finding:
    dropped = {reason: count for reason, count in counts.items() if reason != KEPT}
    return Finding("rows", "good", _("{rows}.", rows=rows_name(recipe.task_class.noun, counts[KEPT], dropped)))


def check_data(
    all_stats: list[CorpusStats], recipe: Recipe, counts: Mapping[str, int] | None = None
) -> Iterator[Finding]:
    """Run all data checks on a recipe's sets; the training set comes first, `counts` are of its rows by reason."""
    train, *held = all_stats
    part, clean = recipe.task_class.doctor, clean_settings(recipe)
    yield from [data_checks.check_complete(stats) for stats in all_stats]
    yield from _check_faulty_lines(recipe)
    there = [stats for stats in all_stats if len(stats)]
    if not len(train):
        return
    yield data_checks.check_duplicates(train, clean, None if counts is None else counts.get(DUPLICATE, 0))
    yield from merge_good(
        [
            *(data_checks.check_leakage(train, stats, clean) for stats in held if len(stats)),
            *(data_checks.check_validation_leakage(*pair) for pair in pairwise(held) if all(map(len, pair))),
        ]
    )
    checks: list[Callable[[CorpusStats], Finding]] = [
        data_checks.check_blank,
        partial(data_checks.check_encoding, clean=clean),
    ]
    if train.source.has_line_per_row or not part.has_long_texts:  # a whole file has some odd character
        checks += [data_checks.check_invisible, data_checks.check_full_width]
    if not part.has_long_texts:
        checks.append(data_checks.check_long_lines)
    if len(train.sides) == 2:
        yield data_checks.check_many_targets(train)
    if part.are_translations(recipe.task):
        source, target = recipe.task_class.languages(recipe.task)
        checks += [
            data_checks.check_ratio,
            check_alignment,
            partial(language_checks.check_declared_languages, languages=(source, target)),
            partial(language_checks.check_mixed_languages, train=train),
            language_checks.check_untranslated,
        ]
    for check in checks:
        yield from merge_good([check(stats) for stats in there])
    yield from part.check_rows([stats.source for stats in there if not stats.read_error], recipe.task)


def _check_faulty_lines(recipe: Recipe) -> Iterator[Finding]:
    """Count lines of the training files that are not UTF-8, or tags that are not valid; training repairs a few."""
    examples: list[str] = []
    n_faults = 0
    corpus = Corpus.of(recipe)

    def add(fault: DataError) -> None:
        nonlocal n_faults
        n_faults += 1
        if n_faults <= MAX_EXAMPLES:
            examples.append(str(fault))

    try:
        for part in () if recipe.data.builtin else recipe.data.corpora:
            columns = corpus.columns(part.files, part)
            deque(corpus.task_class.read(part.files, columns, recipe.task, add), maxlen=0)
    except DataError:
        return  # reported as unreadable
    if n_faults:
        message = _(
            "train: {n_faults:,} lines or tags are not valid; training skips or repairs them if they are few.",
            n_faults=n_faults,
        )
        yield Finding("faulty lines", "warning", message, tuple(examples), _("Correct them."))


def data_sources(recipe: Recipe) -> list[Source]:
    """Return the sets of rows that a recipe names, the training set first."""
    corpus = Corpus.of(recipe)
    if recipe.data.builtin:
        sets = {"train": corpus.train, "valid": corpus.valid, "test": lambda: corpus.tests()["test"]}
        return [_named(corpus, name, partial(_first_rows, read)) for name, read in sets.items()]
    return [_merged([_source(corpus, name, part) for part in parts]) for name, parts in corpus.given_sets().items()]


def _named(corpus: Corpus, name: str, read: Callable[[], Iterable[Row]]) -> Source:
    return Source(name, read, noun=corpus.task_class.doctor.noun, n_texts=corpus.fields.n_texts)


def _merged(sources: list[Source]) -> Source:
    """Return the corpora of a mix as one source with consecutive line numbers."""
    if len(sources) == 1:
        return sources[0]
    return replace(
        sources[0], read=lambda: chain.from_iterable(source.read() for source in sources), files=(), first_line=1
    )


def _source(corpus: Corpus, name: str, part: MixSettings) -> Source:
    """Return a source of some files; as in training, bad lines are skipped only in the training set."""
    skip_bad_lines = name == "train" and corpus.clean.drop_bad_encoding
    return replace(
        _named(corpus, name, lambda: corpus.read(part, skip_bad_lines=skip_bad_lines)),
        files=_short_names(corpus, part.files),
        first_line=2 if _has_header(part.files, corpus.columns(part.files, part)) else 1,
        has_line_per_row=corpus.task_class.doctor.has_line_per_row(part.files, corpus.task),
    )


def _short_names(corpus: Corpus, files: Sequence[str]) -> tuple[str, ...]:
    """Return the names of files, with their folder if another set has a file of that name: valid/seq.in."""
    names = Counter(Path(file).name for parts in corpus.given_sets().values() for part in parts for file in part.files)
    paths = map(Path, files)
    return tuple(path.name if names[path.name] == 1 else f"{path.parent.name}/{path.name}" for path in paths)


def _has_header(files: tuple[str, ...], columns: Mapping[str, str]) -> bool:
    """Return whether the first line names the columns."""
    table = format_of(Path(files[0]))
    return len(files) == 1 and table is not None and table.has_header(columns)


def clean_settings(recipe: Recipe) -> CleanSettings:
    """Return the cleaning rules that training applies."""
    return Corpus.of(recipe).cleaning


def _first_rows(read: Callable[[], Iterable[Row]]) -> Iterator[Row]:
    return islice(read(), _BUILTIN_ROWS)


def _examine_run(folder: Path) -> Iterator[Finding]:
    run_folder = RunFolder(folder)
    run_folder.check_format()
    log = read_log(folder)
    yield training_checks.check_log(log)
    yield from training_checks.check_prepared(log)
    if log.recipe is not None:
        yield training_checks.check_warmup(log.recipe.train)
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
