"""How a language model goes on after a prompt: whole answers in batches, or text as it comes."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from manyheads.decode import DecodeSettings, Hypothesis, IsOver, generate, stream
from manyheads.decode.hypotheses import best_first, make_hypothesis
from manyheads.errors import DataError
from manyheads.model import Tap, Transformer
from manyheads.tasks.reading import fitting, special, with_written
from manyheads.tasks.task import Reading
from manyheads.text.growing import GrowingText
from manyheads.text.tokenizer import BEGIN, END, PAD, UNKNOWN, Tokenizer

_PLACES_AT_ONCE = 16_384  # of prompts and continuations together
_NEVER = (PAD, UNKNOWN, BEGIN)


@dataclass(frozen=True)
class Candidate:
    """One way to go on."""

    text: str
    log_probability: float
    score: float
    finished: bool  # by END or by a stop; False: it was cut off at the maximum length


@dataclass(frozen=True)
class Continued:
    """What became of one prompt."""

    prompt: str
    candidates: Sequence[Candidate]  # best first

    @property
    def answer(self) -> str:
        """The best way to go on, without the prompt."""
        return self.candidates[0].text

    def line(self) -> str:
        r"""The prompt and what follows it as one line: a line end is written as \n, a backslash as two."""
        whole = self.prompt + self.answer
        return whole.replace("\\", "\\\\").replace("\r", "\\r").replace("\n", "\\n")


@dataclass(frozen=True)
class Continuer:
    """A model and its tokenizer, writing on."""

    model: Transformer
    tokenizer: Tokenizer

    def stream(self, prompt: str, settings: DecodeSettings, number: int = 0) -> Iterator[str]:
        """The continuation of one prompt as it becomes certain; `number` is the prompt's where there are many.

        Nothing is taken back: half a character, and what may become a stop, are held until it is known. A beam
        search comes whole in the end.
        """
        if settings.method == "beam":
            yield self.go_on([prompt], settings, first=number)[0].answer
            return
        ids = self._encode(prompt)
        growing = GrowingText(self.tokenizer, ids, settings.stop)
        is_first = True
        for written in stream(self.model, ids, begin=BEGIN, end=END, never=_NEVER, settings=settings, number=number):
            text = growing.add(written.id) if written.id != END else ""
            if text and is_first:
                text, is_first = self._following(prompt, text), False
            if text:
                yield text
            if growing.is_over:
                return
        rest = growing.finish()
        if rest:
            yield self._following(prompt, rest) if is_first else rest

    def go_on(self, prompts: Sequence[str], settings: DecodeSettings, first: int = 0) -> list[Continued]:
        """The candidates for each prompt. An empty one is continued from nothing."""
        encoded = [self._encode(prompt) for prompt in prompts]
        together: dict[int, list[int]] = defaultdict(list)
        found: dict[int, list[Hypothesis]] = {}
        for index, ids in enumerate(encoded):
            if len(ids) + settings.max_extra <= self.model.settings.max_length:
                together[len(ids)].append(index)
            else:
                found[index] = self._slide(ids, settings, first + index)
        for length, indices in together.items():
            n_rows = max(1, _PLACES_AT_ONCE // (settings.n_best * (length + settings.max_extra)))
            for start in range(0, len(indices), n_rows):
                part = indices[start : start + n_rows]
                rows = self._search([encoded[index] for index in part], [first + index for index in part], settings)
                found |= dict(zip(part, rows, strict=True))
        return [
            Continued(prompt, [self._candidate(prompt, ids, hypothesis, settings) for hypothesis in found[index]])
            for index, (prompt, ids) in enumerate(zip(prompts, encoded, strict=True))
        ]

    def reading(self, text: str, answer: str | None = None) -> Reading:
        """BEGIN and the pieces of a prompt, and of what follows it. Where nothing does, nothing ends."""
        if not text:
            raise DataError("The text is empty: there is nothing to read. Give how it begins.")
        begin, context = special(self.tokenizer, BEGIN), self.model.settings.max_length
        pieces = fitting(self.tokenizer.places(self._encode(text)), context - 1)
        reading = Reading(text, target=(begin, *pieces))
        if not answer:
            return reading
        inner = f" {answer}" if self._ends_with_a_space(text) else answer
        ids = self.tokenizer.encode_inner(inner)
        fitting([*pieces, *self.tokenizer.places(ids)], context - 1, "The text with its answer")
        return self._written(reading, answer, ids, has_ended=True)

    def write(self, reading: Reading, settings: DecodeSettings, tap: Tap | None = None) -> tuple[Hypothesis, Reading]:
        """The best way to go on after a reading. Where the context is full, it is cut off: no window slides."""
        prompt = [piece.id for piece in reading.target[1:]]
        best = self._search([prompt], [0], settings, tap)[0][0]
        answer = self._candidate(reading.text, prompt, best, settings).text
        # A stop is the last that was written, and END was not.
        has_ended = best.finished and not self._is_over(prompt, settings.stop)(best.ids)
        return best, self._written(reading, answer, best.ids, has_ended=has_ended)

    def _written(self, reading: Reading, answer: str, ids: Sequence[int], *, has_ended: bool) -> Reading:
        after = len(reading.text) - self._ends_with_a_space(reading.text)
        return with_written(reading, self.tokenizer, answer, ids, has_ended=has_ended, after=after)

    def _search(
        self,
        prompts: Sequence[list[int]],
        numbers: Sequence[int],
        settings: DecodeSettings,
        tap: Tap | None = None,
    ) -> list[list[Hypothesis]]:
        """Prompts of one length, which need no padding."""
        ids = torch.tensor(prompts, dtype=torch.long, device=self.model.output.weight.device)
        return generate(
            self.model,
            prompt=ids.reshape(len(prompts), -1),
            begin=BEGIN,
            end=END,
            never=_NEVER,
            settings=settings,
            streams=numbers,
            is_over=self._is_over(prompts[0], settings.stop) if settings.stop else None,
            tap=tap,
        )

    def _slide(self, prompt: list[int], settings: DecodeSettings, number: int) -> list[Hypothesis]:
        """A prompt that does not fit into the context together with its continuation."""
        if settings.method == "beam":
            raise DataError(
                f"text {number + 1} has {len(prompt):,} pieces; with decode.max_extra = {settings.max_extra} more they "
                f"do not fit into this model's {self.model.settings.max_length:,}. Shorten it, or let the window slide "
                'with decode.method = "greedy" or "sample".'
            )
        is_over = self._is_over(prompt, settings.stop)
        hypotheses = []
        for sample in range(settings.n_best):
            ids: list[int] = []
            total, n_counted, finished = 0.0, 0, False
            for written in stream(
                self.model, prompt, begin=BEGIN, end=END, never=_NEVER, settings=settings, number=number, sample=sample
            ):
                total, n_counted = total + written.log_probability, n_counted + 1
                if written.id != END:
                    ids.append(written.id)
                finished = written.id == END or is_over(ids)
                if finished:
                    break
            hypotheses.append(
                make_hypothesis(ids, total, finished=finished, alpha=settings.length_penalty, length=n_counted)
            )
        return best_first(hypotheses, settings.n_best)

    def _is_over(self, prompt: Sequence[int], stops: Sequence[str]) -> IsOver:
        """Whether ids that go on after a prompt hold a stop; asked after each, only the newest can complete one."""
        n_pieces = 1 + max((len(stop.encode()) for stop in stops), default=0)  # a piece has at least a byte

        def is_over(ids: Sequence[int]) -> bool:
            if len(ids) <= n_pieces:
                text = self.tokenizer.decode_after(prompt, ids)
            else:  # the first of these is not of the stop, so that it does not matter if it loses its space
                text = self.tokenizer.decode(ids[-n_pieces:])
            return any(stop in text for stop in stops)

        return is_over

    def _encode(self, prompt: str) -> list[int]:
        """The ids of a prompt. Where words are pieces with their space, one at the end is left to the next word."""
        return self.tokenizer.encode(prompt[:-1] if self._ends_with_a_space(prompt) else prompt)

    def _following(self, prompt: str, text: str) -> str:
        """What is written after a prompt, without a space that the prompt has already."""
        return text.removeprefix(" ") if self._ends_with_a_space(prompt) else text

    def _ends_with_a_space(self, prompt: str) -> bool:
        return (
            self.tokenizer.has_prefix and prompt.endswith(" ") and not prompt.endswith(("  ", "\n ")) and prompt != " "
        )

    def _candidate(
        self, prompt: str, ids: Sequence[int], hypothesis: Hypothesis, settings: DecodeSettings
    ) -> Candidate:
        growing = GrowingText(self.tokenizer, ids, settings.stop)
        parts = []
        for piece_id in hypothesis.ids:
            parts.append(growing.add(piece_id))
            if growing.is_over:
                break
        text = self._following(prompt, "".join([*parts, growing.finish()]))
        return Candidate(text, hypothesis.log_probability, hypothesis.score, hypothesis.finished)
