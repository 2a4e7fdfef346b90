"""What `manyheads predict` writes for each line: `PredictOptions` decide it, and `AnswerLines` writes it.

The bytes of an answer depend on the options, on the line and its number, and on the batch it is in. Batches of
`BATCH_LINES` lines count from the first line of the input, so a job of shards writes what one process would.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyheads.answer.request import AnswerOptions
from manyheads.cli.decode_options import check_text_options, with_decode_changes, with_threshold
from manyheads.cli.predict_markup import require_translator
from manyheads.messages import _

if TYPE_CHECKING:
    from manyheads.answer.answer import Answer
    from manyheads.bundle import Bundle

BATCH_LINES = 1000  # lines that are answered together

NameLine = Callable[[int], str]  # names the line of this number, counted from 1, in messages


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

    def load(self) -> "Bundle":
        """Load the bundle, and check that it supports the options."""
        from manyheads.bundle import load
        from manyheads.lens.aligner import require_cross_attention

        options = self.answer
        loaded = load(self.bundle, device=self.device, engine=self.engine, use_shortlist=self.use_shortlist)
        loaded = with_decode_changes(
            with_threshold(loaded, self.bundle, options.threshold), self.bundle, options.decode
        )
        check_text_options(loaded, self.bundle, options)
        if options.format == "html":
            require_translator(loaded, self.bundle)
        if options.align:
            require_cross_attention(loaded, str(self.bundle))
        return loaded

    def table(self) -> dict[str, Any]:
        """Return the options as JSON values, without the bundle."""
        own = {name: getattr(self, name) for name in ("as_json", "engine", "use_shortlist", "device")}
        return self.answer.table() | own

    @classmethod
    def from_table(cls, bundle: Path, table: Mapping[str, Any]) -> "PredictOptions":
        """Return the options that `table` gave."""
        own = {name: table[name] for name in ("as_json", "engine", "use_shortlist", "device")}
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
        answers = self.answerer.answers(
            lines, self.options.answer, first=start - 1, name=lambda index: self.name_line(start + index)
        )
        for number, answer in enumerate(answers, start):
            self.remarks.add(number, answer)
            if self.options.as_json:
                yield self._json(number, answer)
            elif self.n_best > 1:
                yield from _candidate_lines(number, answer)
            elif answer.alignment is not None:
                yield f"{answer.line()}\t{answer.alignment.pharaoh()}"
            else:
                yield answer.line()

    def write_document(self, html: str) -> str:
        """Return the output of an HTML document."""
        (answer,) = self.answerer.answers([html], self.options.answer, first=0)
        self.remarks.add(1, replace(answer, is_blank=False))  # a page without text is no line without text
        return self._json(1, answer) + "\n" if self.options.as_json else str(answer.prediction.answer)

    def _json(self, number: int, answer: "Answer") -> str:
        """Return an answer as a JSON object."""
        from manyheads.answer.answer_json import answer_fields

        return json.dumps({"line": number, **answer_fields(answer, self.answerer.bundle)}, ensure_ascii=False)


def _candidate_lines(number: int, answer: "Answer") -> Iterator[str]:
    """Yield a line for each hypothesis; only translations have several."""
    from manyheads.tasks import Translations, one_line

    if not isinstance(answer.prediction, Translations):
        yield answer.line()
    elif not answer.prediction.abstained:
        for candidate in answer.prediction.candidates:
            yield f"{number}\t{candidate.score:.4f}\t{one_line(candidate.text)}"
