"""Options that several commands share: counts and files, those of decoding, and those of texts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from manyheads.messages import _

if TYPE_CHECKING:
    from manyheads.answer.request import AnswerOptions
    from manyheads.bundle import Bundle


MAX_COUNT = 1_000_000_000

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--beam", type=int, help=_("Beam size. [default: the bundle's]")),
    click.option(
        "--length-penalty",
        type=float,
        help=_(
            "Length penalty of beam search; larger favors longer outputs. [default: the bundle's, chosen in training]"
        ),
    ),
    click.option("--greedy", is_flag=True, help=_("Greedy search: the fastest.")),
    click.option("--sample", is_flag=True, help=_("Sample instead of searching.")),
    click.option(
        "--temperature",
        type=float,
        help=_("Sampling temperature; lower is more deterministic."),
    ),
    click.option("--top-k", type=int, help=_("Sample from the k most probable tokens.")),
    click.option(
        "--top-p",
        type=float,
        help=_("Sample from the smallest set of tokens with this total probability."),
    ),
    click.option("--seed", type=int, help=_("Random seed of sampling.")),
    click.option("--max-new-tokens", type=int, help=_("Maximum number of new tokens.")),
    click.option(
        "--no-repeat-ngram",
        type=int,
        help=_("Generate no sequence of this many tokens twice."),
    ),
)
THRESHOLD = click.option(
    "--threshold",
    type=click.FloatRange(min=0, max=1, max_open=True),
    help=_(
        "Leave out labels or spans that are less probable; `evaluate --precision` chooses it. [default: the bundle's]"
    ),
)


BASELINE_ONLY = click.option(
    "--baseline-only",
    is_flag=True,
    help=_("Answer with the bundle's linear model alone, which is faster; `evaluate` says how it scores."),
)

_TEXT_OPTIONS = (
    click.option(
        "--glossary",
        type=click.Path(path_type=Path),
        help=_(
            "File of terms, one per line: source, tab, target. A translation contains the target of each "
            "source term in its line. If the model has never seen it there, the rest of the sentence may get "
            "worse."
        ),
    ),
    click.option(
        "--keep",
        multiple=True,
        help=_("Repeat this word unchanged in a translation, such as a name; may be repeated."),
    ),
    click.option("--prefix", help=_("Begin every translation with this text.")),
    click.option(
        "--abstain",
        type=click.FloatRange(min=0, max=1),
        help=_("Leave the line of a translation empty if its confidence is lower, such as 0.05."),
    ),
)


class Count(click.types.IntParamType):
    """A whole number that Python can count to; what is too small, the library reports."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Convert the text of an option."""
        number = super().convert(value, param, ctx)
        if number > MAX_COUNT:
            self.fail(_("{number} is more than {limit:,}.", number=number, limit=MAX_COUNT), param, ctx)
        return int(number)


COUNT = Count()
JSON_RESULTS = click.option("--json", "as_json", is_flag=True, help=_("Print the results as JSON."))
MAX_COST = click.option(
    "--max-cost",
    type=click.FloatRange(min=0),
    default=0.2,
    show_default=True,
    help=_("Largest accepted loss: points of a score out of 100, or percent of the nats per character."),
)
OVERWRITE_BUNDLE = click.option("--overwrite", is_flag=True, help=_("Replace an existing bundle."))
VALID_FILES = click.option(
    "--valid",
    multiple=True,
    type=click.Path(path_type=Path),
    help=_("Files with rows to measure on. [default: the validation set of the recipe]"),
)


def check_inputs(bundle: Path, files: Sequence[Path | str]) -> None:
    """Raise at once if the folder of a bundle or a file does not exist, before torch is imported."""
    from manyheads.errors import BundleError
    from manyheads.text.reading.files import check_readable

    if not bundle.exists():
        raise BundleError(_("{folder}: there is no such folder.", folder=bundle))
    for file in map(Path, files):
        if not file.exists():
            check_readable(file)


def column_option(field: str, column: str) -> str:
    """Return the option that chooses the column of a field, as a part of a command to copy."""
    from manyheads.cli.rendering.output import quoted

    return f"--{field}-column {quoted(column)}"


def text_options(command: Command) -> Command:
    """Add the options of translations to a command."""
    for option in reversed(_TEXT_OPTIONS):
        command = option(command)
    return command


def read_text_options(glossary: Path | None, keep: Sequence[str], prefix: str | None) -> dict[str, Any]:
    """Return what the translations must satisfy, as fields of `AnswerOptions`."""
    if prefix == "":
        raise click.UsageError(_("--prefix is empty. Give the beginning of the translations, or leave it out."))
    if glossary is None and not keep and prefix is None:
        return {}
    from manyheads.tasks import TextOptions
    from manyheads.text.terms.glossary import read_glossary

    terms = {} if glossary is None else read_glossary(glossary)
    TextOptions(terms, keep, prefix or "")  # raises DataError if they are not valid
    return {"glossary": terms, "keep": tuple(keep), "prefix": prefix or ""}


def check_text_options(loaded: "Bundle", path: Path, options: "AnswerOptions") -> None:
    """Raise UsageError if the options are for translations, and the bundle does not translate."""
    from manyheads.tasks import PairTask

    is_translation = isinstance(loaded.task, PairTask) and loaded.task.is_translation
    if options.has_requirements and not is_translation:
        raise click.UsageError(
            _(
                "--glossary, --keep and --prefix need a translation model; {path} is a bundle of the task {kind}.",
                path=path,
                kind=loaded.kind,
            )
        )
    if options.decode.get("abstain") is not None:
        if not isinstance(loaded.task, PairTask):
            raise click.UsageError(
                _(
                    "--abstain needs a seq2seq model; {path} is a bundle of the task {kind}.",
                    path=path,
                    kind=loaded.kind,
                )
            )
        loaded.require_confidence(loaded.decode)


def decode_options(command: Command) -> Command:
    """Add the options of decoding to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def decode_changes(*, beam: int | None, greedy: bool, sample: bool, **rest: Any) -> dict[str, Any]:
    """Return the decoding settings that the options override."""
    if greedy + sample + (beam is not None) > 1:
        raise click.UsageError(_("--beam, --greedy and --sample exclude one another. Choose one."))
    given = {name: value for name, value in rest.items() if value not in (None, ())}
    if not sample and {"temperature", "top_k", "top_p", "seed"} & set(given):
        raise click.UsageError(_("--temperature, --top-k, --top-p and --seed are for --sample."))
    if beam is not None:
        given |= {"method": "beam", "beam": beam}
    elif greedy or sample:
        given["method"] = "greedy" if greedy else "sample"
    return given


def with_decode_changes(loaded: "Bundle", path: Path, changes: Mapping[str, Any]) -> "Bundle":
    """Return the bundle with these decoding settings, after checking that it has them."""
    from manyheads.decode import DecodeSettings
    from manyheads.settings import build, to_table

    if not changes:
        return loaded
    if not loaded.task.model.settings.has_decoder:
        method = [str(changes["method"])] if changes.get("method") in ("greedy", "sample") else []
        names = ", ".join(f"--{name.replace('_', '-')}" for name in [*method, *changes] if name != "method")
        raise click.UsageError(
            _(
                "{path} is a bundle of the task {kind}, which generates no text: leave out {names}.",
                path=path,
                kind=loaded.kind,
                names=names,
            )
        )
    if "stop" in changes and not loaded.task.continues_prompts:
        raise click.UsageError(
            _("--stop needs a language model; {path} is a bundle of the task {kind}.", path=path, kind=loaded.kind)
        )
    settings = build(DecodeSettings, to_table(loaded.decode) | dict(changes), "decode.")
    if "length_penalty" in changes and settings.method == "greedy":
        raise click.UsageError(_("--length-penalty is for beam search: add --beam 4, or leave it out."))
    return replace(loaded, decode=settings)


def with_threshold(loaded: "Bundle", path: Path, threshold: float | None) -> "Bundle":
    """Return the bundle with this threshold of probability, after checking that its answers have probabilities."""
    from manyheads.tasks import LabelingTask

    if threshold is None:
        return loaded
    task = loaded.task
    if not isinstance(task, LabelingTask):
        raise click.UsageError(
            _(
                "--threshold needs a classifier or a tagger; {path} is a bundle of the task {kind}.",
                path=path,
                kind=loaded.kind,
            )
        )
    return replace(loaded, task=task.with_threshold(threshold))
