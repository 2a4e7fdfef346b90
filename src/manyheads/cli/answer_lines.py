"""What `manyheads predict` writes for each line: `AnswerOptions` decide it, and `AnswerWriter` writes it.

The bytes of an answer depend on the options, on the line and its number, and on the batch it is in. Batches of
`BATCH_LINES` lines count from the first line of the input, so a job of shards writes what one process would.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyheads.cli.decode_options import check_text_options, with_decode_changes, with_threshold
from manyheads.cli.predict_markup import MarkupWriter, require_translator
from manyheads.cli.prediction_remarks import Remarks

if TYPE_CHECKING:
    from manyheads.bundle import Bundle
    from manyheads.lens.aligner import Aligner
    from manyheads.tasks import Prediction, TextOptions

BATCH_LINES = 1000  # lines that are answered together

NameLine = Callable[[int], str]  # names the line of this number, counted from 1, in messages


def name_line(number: int) -> str:
    """Name a line of a single input."""
    return f"Line {number}"


@dataclass(frozen=True)
class AnswerOptions:
    """All that decides the answers of `predict`, apart from the lines."""

    bundle: Path
    changes: Mapping[str, Any]  # of the decoding settings
    threshold: float | None = None
    texts: "TextOptions | None" = None  # glossary, words to keep, prefix
    align: bool = False
    text_format: str = "text"
    as_json: bool = False
    engine: str = "auto"
    use_shortlist: bool = True
    device: str = "auto"

    def load(self) -> "Bundle":
        """Load the bundle, and check that it supports the options."""
        from manyheads.bundle import load

        loaded = load(self.bundle, device=self.device, engine=self.engine, use_shortlist=self.use_shortlist)
        loaded = with_decode_changes(with_threshold(loaded, self.bundle, self.threshold), self.bundle, self.changes)
        check_text_options(loaded, self.bundle, self.texts, self.changes.get("abstain"))
        if self.text_format == "html":
            require_translator(loaded, self.bundle)
        return loaded

    def writer(self, loaded: "Bundle", name_line: NameLine = name_line) -> "AnswerWriter | MarkupWriter":
        """Return what writes the answers of the loaded bundle."""
        if self.text_format == "html":
            return MarkupWriter(require_translator(loaded, self.bundle), as_json=self.as_json, options=self.texts)
        return AnswerWriter(
            loaded,
            n_best=self.changes.get("n_best", 1),
            as_json=self.as_json,
            aligned=Alignments(loaded, self.bundle) if self.align else None,
            options=self.texts,
            name_line=name_line,
        )


class AnswerWriter:
    """Turns batches of input lines into output lines, and collects remarks on them."""

    def __init__(
        self,
        bundle: "Bundle",
        *,
        n_best: int,
        as_json: bool,
        aligned: "Alignments | None" = None,
        options: "TextOptions | None" = None,
        name_line: NameLine = name_line,
    ) -> None:
        self.bundle = bundle
        self.name_line = name_line
        self.aligned = aligned
        self.options = options
        self.n_best = n_best
        self.as_json = as_json
        self.remarks = Remarks()
        self.too_long: dict[int, str] = {}  # by line number, the error; of the current batch

    def answer(self, lines: list[str], start: int) -> Iterator[str]:
        """Yield the output lines of a batch; `start` is the number of its first line, counted from 1."""
        from manyheads.tasks import Classification, Translations

        self.too_long = {}
        readable = [line if self._fits(line, number) else "" for number, line in enumerate(lines, start)]
        predictions = self.bundle.predictions(readable, first=start - 1, options=self.options)
        if self.aligned:
            self.aligned.align(start, readable, predictions)
        for number, prediction in enumerate(predictions, start):
            unseen_words = self.bundle.unseen_words(readable[number - start])
            self.remarks.add(number, unseen_words, getattr(prediction, "warnings", ()))
            if self._is_blank(lines[number - start]):
                self.remarks.blank_lines.append(number)
            if isinstance(prediction, Classification) and prediction.is_out_of_scope:
                self.remarks.out_of_scope.append(number)
            if isinstance(prediction, Translations):
                self.remarks.n_cut_off += not prediction.candidates[0].finished
                self.remarks.rate(number, prediction)
            yield from self._format(number, lines[number - start], prediction, unseen_words)

    def _is_blank(self, line: str) -> bool:
        """Return whether the line has no text to answer; a language model starts a new text there."""
        from manyheads.text.tokens.words import is_blank

        return is_blank(line) and not self.bundle.task.continues_prompts

    def _fits(self, line: str, number: int) -> bool:
        from manyheads.errors import DataError

        try:
            self.bundle.task.check(line, self.name_line(number))
        except DataError as error:
            self.remarks.add_error(str(error))
            self.too_long[number] = str(error)
            return False
        return True

    def _format(self, number: int, line: str, prediction: "Prediction", unseen_words: Sequence[str]) -> Iterator[str]:
        from manyheads.tasks import Translations, one_line

        if self.as_json:
            yield self._as_json(number, line, prediction, unseen_words)
        elif isinstance(prediction, Translations) and self.n_best > 1:
            shown = () if prediction.abstained else prediction.candidates
            yield from (f"{number}\t{one.score:.4f}\t{one_line(one.text)}" for one in shown)
        else:
            line_out = "" if number in self.too_long or self._is_blank(line) else prediction.line()
            yield f"{line_out}\t{self.aligned.pairs(number)}" if self.aligned else line_out

    def _as_json(self, number: int, line: str, prediction: "Prediction", unseen_words: Sequence[str]) -> str:
        import json
        from dataclasses import asdict

        payload: dict[str, Any] = asdict(prediction)  # type: ignore[call-overload]
        if number in self.too_long:
            lists: dict[str, Any] = {name: [] for name, value in payload.items() if isinstance(value, list | tuple)}
            payload = {**lists, "error": self.too_long[number]}
        if self.aligned:
            payload |= self.aligned.payload(number)
        if self._is_blank(line):
            payload["note"] = "The line has no text."
        if self.bundle.seen_words is not None:
            payload["unseen_words"] = unseen_words
        return json.dumps({"line": number, "source": line, **payload}, ensure_ascii=False)


class Alignments:
    """Word alignments of the current batch of lines."""

    def __init__(self, bundle: "Bundle", path: Path) -> None:
        from manyheads.lens.aligner import require_cross_attention

        require_cross_attention(bundle, str(path))
        self.bundle, self.path = bundle, path
        self.aligner: Aligner | None = None
        self.chosen_at = 0  # the number of the first line of the batch that the aligner was chosen at
        self.alignments: dict[int, dict[str, Any]] = {}

    def align(self, start: int, sources: list[str], predictions: "Sequence[Prediction]") -> None:
        """Align the answers with these lines; alignment heads are chosen at the first batch that has text."""
        from manyheads.lens.aligner import choose_aligner, split_words

        targets = [prediction.answer for prediction in predictions]
        if self.aligner is None or start < self.chosen_at:
            pairs = [(source, target) for source, target in zip(sources, targets, strict=True) if source.strip()]
            if not pairs:
                self.alignments = {number: {"alignment": []} for number in range(start, start + len(sources))}
                return
            self.aligner, self.chosen_at = choose_aligner(self.bundle, str(self.path), pairs), start
        links = self.aligner.align(sources, targets, [getattr(one, "parts", ()) for one in predictions])
        self.alignments = {
            number: {
                "alignment": own,
                "source_words": split_words(source).words,
                "target_words": split_words(target).words,
                "heads": self.aligner.heads,
            }
            for number, (source, target, own) in enumerate(zip(sources, targets, links, strict=True), start)
        }

    def pairs(self, number: int) -> str:
        """Return the pairs of a line in Pharaoh format."""
        return " ".join(f"{i}-{j}" for i, j in self.alignments[number]["alignment"])

    def payload(self, number: int) -> dict[str, Any]:
        """Return the pairs of a line with the words they refer to."""
        return self.alignments[number]
