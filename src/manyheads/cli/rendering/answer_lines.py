"""What `manyheads predict` writes for each line: `PredictOptions` decide it, and `AnswerLines` writes it.

The bytes of an answer depend on the options, on the line and its number, and on the batch it is in. Batches of
`BATCH_LINES` lines count from the first line of the input, so a job of shards writes what one process would.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.answer.request import AnswerOptions
from manyheads.cli.options import check_text_options, with_decode_changes, with_threshold
from manyheads.cli.rendering.output import quoted
from manyheads.messages import Message, _, _n

if TYPE_CHECKING:
    from manyheads.answer.answer import Answer
    from manyheads.answer.remarks import LineNumbers, Remarks
    from manyheads.bundle import Bundle


BATCH_LINES = 1000  # lines that are answered together

NameLine = Callable[[int], str]  # names the line of this number, counted from 1, in messages

_OWN = ("as_json", "engine", "use_shortlist", "device", "baseline_only")  # options of `PredictOptions` itself
_N_WORDS = 5  # named in a remark
_WARNINGS = {
    "repetition": Message("repetition"),
    "length": Message("unusual length"),
    "short": Message("text left out"),
    "missing": Message("code, markup or URLs lost"),
    "glossary": Message("a required term lost"),
}


def name_line(number: int) -> str:
    """Name a line of a single input."""
    return _("Line {number}", number=number)


@dataclass(frozen=True)
class PredictOptions:
    """All that decides the output of `predict`, apart from the lines."""

    bundle: Path
    answer: AnswerOptions
    as_json: bool = False
    engine: str = "auto"
    use_shortlist: bool = True
    device: str = "auto"
    baseline_only: bool = False

    def load(self) -> "Bundle":
        """Load the bundle, and check that it supports the options."""
        from manyheads.bundle import load
        from manyheads.lens.aligner import require_cross_attention

        options = self.answer
        loaded = load(self.bundle, device=self.device, engine=self.engine, use_shortlist=self.use_shortlist)
        loaded = with_decode_changes(
            with_threshold(loaded, self.bundle, options.threshold), self.bundle, options.decode
        )
        if self.baseline_only:
            loaded = loaded.baseline_alone()
        check_text_options(loaded, self.bundle, options)
        if options.format == "html":
            require_translator(loaded, self.bundle)
        self._warn_if_unusable(loaded)
        if options.align:
            require_cross_attention(loaded, str(self.bundle))
        return loaded

    def _warn_if_unusable(self, loaded: "Bundle") -> None:
        from manyheads.metrics.translation_scorecard import USABLE_BLEU, are_unusable
        from manyheads.tasks import PairTask

        is_translation = isinstance(loaded.task, PairTask) and loaded.task.is_translation
        for name, scores in loaded.scores.items() if is_translation else ():
            if are_unusable(scores):
                value = next(score.value for score in scores if score.name == "BLEU")
                text = _(
                    "Warning: {bundle} is unusable: its BLEU is {value:.1f} ({name}), and below {floor:g} hardly a "
                    "translation says what its source says.",
                    bundle=self.bundle,
                    value=value,
                    name=name,
                    floor=USABLE_BLEU,
                )
                click.echo(text, err=True)
                return

    def table(self) -> dict[str, Any]:
        """Return the options as JSON values, without the bundle."""
        own = {name: getattr(self, name) for name in _OWN}
        return self.answer.table() | own

    @classmethod
    def from_table(cls, bundle: Path, table: Mapping[str, Any]) -> "PredictOptions":
        """Return the options that `table` gave."""
        own = {name: table[name] for name in _OWN}
        answer = AnswerOptions.from_table({name: value for name, value in table.items() if name not in own})
        return cls(bundle, answer, **own)


class AnswerLines:
    """Turns batches of input lines into output lines, and collects remarks on them."""

    def __init__(self, bundle: "Bundle", options: PredictOptions, name_line: NameLine = name_line) -> None:
        from manyheads.answer.answerer import Answerer
        from manyheads.answer.remarks import Remarks

        self.options, self.name_line = options, name_line
        self.answerer = Answerer(bundle)
        self.remarks = Remarks()
        self.n_best: int = options.answer.decode.get("n_best", 1)

    def write(self, lines: Sequence[str], start: int) -> Iterator[str]:
        """Yield the output lines of a batch; `start` is the number of its first line, counted from 1."""
        numbers = range(start, start + len(lines))
        for number, answer in zip(numbers, self.answers(lines, start - 1, numbers), strict=True):
            if self.options.as_json:
                yield self._json(number, answer)
            elif self.n_best > 1:
                yield from _candidate_lines(number, answer)
            elif answer.alignment is not None:
                yield f"{answer.line()}\t{answer.alignment.pharaoh()}"
            else:
                yield answer.line()

    def answers(self, texts: Sequence[str], first: int, numbers: Sequence[int]) -> "Iterator[Answer]":
        """Yield the answers to a batch, the first of which has the index `first`; `numbers` name its lines or rows."""
        answers = self.answerer.answers(
            texts, self.options.answer, first=first, name=lambda index: self.name_line(numbers[index])
        )
        for number, answer in zip(numbers, answers, strict=True):
            self.remarks.add(number, answer)
            yield answer

    def _json(self, number: int, answer: "Answer") -> str:
        """Return an answer as a JSON object."""
        return json.dumps(self.fields(number, answer), ensure_ascii=False)

    def fields(self, number: int, answer: "Answer") -> dict[str, Any]:
        """Return the number of a line and its answer as JSON values."""
        from manyheads.answer.answer import answer_fields

        return {"line": number, **answer_fields(answer, self.answerer.bundle)}


def _candidate_lines(number: int, answer: "Answer") -> Iterator[str]:
    """Yield a line for each hypothesis; only translations have several."""
    from manyheads.tasks import Translations, one_line

    if not isinstance(answer.prediction, Translations):
        yield answer.line()
    elif not answer.prediction.abstained:
        for candidate in answer.prediction.candidates:
            yield f"{number}\t{candidate.score:.4f}\t{one_line(candidate.text)}"


def refuse_documents(bundle: Path, files: Sequence[str]) -> None:
    """Raise UsageError if a file is a document, of which lines are no texts."""
    from manyheads.text.documents.formats import document_format

    for file in files:
        if document_format(file) is not None:
            command = f"manyheads translate-file {quoted(bundle)} {quoted(file)} -o FILE"
            raise click.UsageError(
                _(
                    "{file} is a document, not lines of text. Translate it with: {command}. To read its lines all the "
                    "same, add --format text.",
                    file=file,
                    command=command,
                )
            )


def require_translator(bundle: "Bundle", path: Path) -> None:
    """Raise UsageError if the bundle does not translate HTML."""
    from manyheads.answer.markup_translation import MarkupTranslator
    from manyheads.errors import BundleError

    try:
        MarkupTranslator(bundle)
    except BundleError:
        raise click.UsageError(
            _(
                "--format html needs a translation model; {path} is a bundle of the task {kind}. Leave it out.",
                path=path,
                kind=bundle.kind,
            )
        ) from None


def show_remarks(remarks: "Remarks") -> None:
    """Write the remarks to standard error, and forget them."""
    if remarks.blank_lines.n_lines:
        click.echo(_describe_blank(remarks.blank_lines), err=True)
    if remarks.foreign.n_lines:
        click.echo(_describe_foreign(remarks.foreign), err=True)
    if remarks.unseen:
        click.echo(_describe_unseen(list(remarks.unseen.values())), err=True)
    if remarks.out_of_scope.n_lines:
        click.echo(_describe_out_of_scope(remarks.out_of_scope), err=True)
    if remarks.suspect:
        click.echo(_describe_suspect(remarks.suspect), err=True)
    if remarks.low_confidence.n_lines:
        click.echo(_describe_low_confidence(remarks.low_confidence, remarks.n_rated), err=True)
    if remarks.abstained.n_lines:
        click.echo(_describe_abstained(remarks.abstained, remarks.n_rated), err=True)
    remarks.clear()


def show_errors(remarks: "Remarks", n_most: int | None = None) -> None:
    """Write the errors of lines to standard error, at most `n_most` of them, and forget them."""
    for error in remarks.errors[:n_most]:
        click.echo(_("Error: {error} Its output line stays empty.", error=error), err=True)
    n_more = len(remarks.errors[n_most:]) if n_most is not None else 0
    if n_more:
        click.echo(_n("Error: 1 more line is too long.", "Error: {n:,} more lines are too long.", n_more), err=True)
    remarks.errors.clear()


def show_cut_off(remarks: "Remarks") -> None:
    """Write how many translations were cut off to standard error."""
    if remarks.n_cut_off:
        text = _("{n_cut_off} of the translations were cut off at the maximum length.", n_cut_off=remarks.n_cut_off)
        click.echo(text, err=True)


def _describe_blank(lines: "LineNumbers") -> str:
    return _n(
        "Warning: 1 line has no text ({lines}): its output line is empty.",
        "Warning: {n:,} lines have no text ({lines}): their output lines are empty.",
        lines.n_lines,
        lines=_name_lines(lines),
    )


def _describe_foreign(lines: "LineNumbers") -> str:
    return _n(
        "Warning: 1 line is not in the language that this model reads ({lines}).",
        "Warning: {n:,} lines are not in the language that this model reads ({lines}).",
        lines.n_lines,
        lines=_name_lines(lines),
    )


def _describe_out_of_scope(lines: "LineNumbers") -> str:
    return _n(
        "Warning: 1 line looks out of scope ({lines}): probably no label fits.",
        "Warning: {n:,} lines look out of scope ({lines}): probably no label fits.",
        lines.n_lines,
        lines=_name_lines(lines),
    )


def _describe_low_confidence(lines: "LineNumbers", n_rated: int) -> str:
    from manyheads.tasks.seq2seq.translation_search import LOW_CONFIDENCE

    return _n(
        "Warning: 1 of {n_rated:,} translations has a low confidence ({lines}): as improbable as the lowest {share} of "
        "the validation set.",
        "Warning: {n:,} of {n_rated:,} translations have a low confidence ({lines}): as improbable as the lowest "
        "{share} of the validation set.",
        lines.n_lines,
        n_rated=n_rated,
        lines=_name_lines(lines),
        share=f"{LOW_CONFIDENCE:.0%}".replace("%", " %"),
    )


def _describe_abstained(lines: "LineNumbers", n_rated: int) -> str:
    return _n(
        "Warning: 1 of {n_rated:,} translations has a confidence below --abstain ({lines}): its output line is empty.",
        "Warning: {n:,} of {n_rated:,} translations have a confidence below --abstain ({lines}): their output lines "
        "are empty.",
        lines.n_lines,
        n_rated=n_rated,
        lines=_name_lines(lines),
    )


def _describe_unseen(words: Sequence[tuple[str, list[int]]]) -> str:
    from manyheads.answer.remarks import MAX_UNSEEN, LineNumbers

    named = [
        _("{word} ({lines})", word=word, lines=_name_lines(LineNumbers(len(lines), lines)))
        for word, lines in words[:_N_WORDS]
    ]
    listed, n_more = _(", ").join(named), len(words) - len(named)
    if n_more:
        listed = _("{words} and {n_more:,} more", words=listed, n_more=n_more)
    if len(words) >= MAX_UNSEEN:
        return _("Warning: at least {n:,} words did not occur in training: {words}.", n=len(words), words=listed)
    return _n(
        "Warning: 1 word did not occur in training: {words}.",
        "Warning: {n:,} words did not occur in training: {words}.",
        len(words),
        words=listed,
    )


def _describe_suspect(suspect: "Mapping[str, LineNumbers]") -> str:
    named = [
        _("{warning} in {lines}", warning=_WARNINGS[warning], lines=_name_lines(lines))
        for warning, lines in suspect.items()
    ]
    return _(
        "Warning: suspect outputs: {outputs}. The model may not know such input; check these lines.",
        outputs=_("; ").join(named),
    )


def _name_lines(lines: "LineNumbers") -> str:
    from manyheads.answer.remarks import N_LINES

    numbers = _(", ").join(map(str, lines.first[:N_LINES]))
    if lines.n_lines > N_LINES:
        return _("lines {numbers}, …", numbers=numbers)
    return _n("line {numbers}", "lines {numbers}", lines.n_lines, numbers=numbers)
