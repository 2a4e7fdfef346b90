"""Text generation from a prompt: complete continuations in batches, or streamed text."""

from collections import defaultdict
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import torch

from manyheads.decode import DecodeSettings, Hypothesis, StoppingCriterion, generate, is_looping, stream
from manyheads.decode.hypotheses import best_first, make_hypothesis
from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.model import Tap, Transformer
from manyheads.tasks.model_inputs import ModelInput, check_fits, special_token, with_output
from manyheads.text.tokens.text_streamer import TextStreamer
from manyheads.text.tokens.tokenizer import BOS, EOS, PAD, UNK, Tokenizer

_BATCH_POSITIONS = 16_384  # of prompts and continuations together
_FORBIDDEN = (PAD, UNK, BOS)


@dataclass(frozen=True)
class Candidate:
    """One continuation."""

    text: str
    log_probability: float
    score: float
    finished: bool  # by EOS or a stop string; False if it reached the maximum length


@dataclass(frozen=True)
class Generation:
    """The continuations of one prompt."""

    prompt: str
    candidates: Sequence[Candidate]  # best first
    warnings: Sequence[str] = ()  # "repetition": the best candidate is caught in a loop

    @property
    def answer(self) -> str:
        """The best continuation, without the prompt."""
        return self.candidates[0].text

    def line(self) -> str:
        r"""The prompt and its continuation as one line: line breaks become \n, backslashes are doubled."""
        whole = self.prompt + self.answer
        return whole.replace("\\", "\\\\").replace("\r", "\\r").replace("\n", "\\n")

    def cells(self) -> dict[str, str | float | None]:
        """The best continuation."""
        return {"answer": self.answer}


@dataclass(frozen=True)
class TextGenerator:
    """Generates continuations with a model and its tokenizer."""

    model: Transformer
    tokenizer: Tokenizer

    def stream(self, prompt: str, settings: DecodeSettings, number: int = 0) -> Generator[str, None, bool]:
        """Yield the continuation of one prompt in parts; `number` is the prompt's index among many.

        Text is never retracted: incomplete characters and possible stop strings are held back. With beam search the
        continuation comes whole at the end. The generator returns whether the continuation is finished.
        """
        if settings.method == "beam":
            best = self.generate([prompt], settings, first=number)[0].candidates[0]
            yield best.text
            return best.finished
        ids = self._encode(prompt)
        streamer = TextStreamer(self.tokenizer, ids, settings.stop)
        is_first, is_finished = True, False
        for written in stream(
            self.model, ids, bos=BOS, eos=EOS, forbidden=_FORBIDDEN, settings=settings, number=number
        ):
            is_finished = written.id == EOS
            text = streamer.add(written.id) if written.id != EOS else ""
            if text and is_first:
                text, is_first = self._following(prompt, text), False
            if text:
                yield text
            if streamer.is_stopped:
                return True
        rest = streamer.finish()
        if rest:
            yield self._following(prompt, rest) if is_first else rest
        return is_finished

    def generate(self, prompts: Sequence[str], settings: DecodeSettings, first: int = 0) -> list[Generation]:
        """Generate the candidates for each prompt; a prompt may be empty."""
        encoded = [self._encode(prompt) for prompt in prompts]
        together: dict[int, list[int]] = defaultdict(list)
        by_prompt: dict[int, list[Hypothesis]] = {}
        for index, ids in enumerate(encoded):
            if len(ids) + settings.max_length() <= self.model.settings.max_length:
                together[len(ids)].append(index)
            else:
                by_prompt[index] = self._slide(ids, settings, first + index)
        for length, indices in together.items():
            n_rows = max(1, _BATCH_POSITIONS // max(1, settings.n_best * (length + settings.max_length())))
            for start in range(0, len(indices), n_rows):
                part = indices[start : start + n_rows]
                rows = self._search([encoded[index] for index in part], [first + index for index in part], settings)
                by_prompt |= dict(zip(part, rows, strict=True))
        return [
            Generation(
                prompt,
                [self._candidate(prompt, ids, hypothesis, settings) for hypothesis in by_prompt[index]],
                ["repetition"] if is_looping(by_prompt[index][0].ids, ids) else [],
            )
            for index, (prompt, ids) in enumerate(zip(prompts, encoded, strict=True))
        ]

    def model_input(self, text: str, answer: str | None = None) -> ModelInput:
        """BOS and the tokens of a prompt and of its continuation, which ends in EOS if there is one."""
        if not text:
            raise DataError(_("The text is empty: there is nothing to read. Give a prompt."))
        begin, context = special_token(self.tokenizer, BOS), self.model.settings.max_length
        tokens = check_fits(self.tokenizer.tokens_from_ids(self._encode(text)), context - 1)
        model_input = ModelInput(text, target=(begin, *tokens))
        if not answer:
            return model_input
        inner = f" {answer}" if self._ends_with_a_space(text) else answer
        ids = self.tokenizer.encode_continuation(inner)
        check_fits([*tokens, *self.tokenizer.tokens_from_ids(ids)], context - 1, _("The text with its answer"))
        return self._written(model_input, answer, ids, has_ended=True)

    def generate_one(
        self, model_input: ModelInput, settings: DecodeSettings, tap: Tap | None = None
    ) -> tuple[Hypothesis, ModelInput]:
        """The best continuation; it is cut off where the context is full, since the window does not slide."""
        prompt = [token.id for token in model_input.target[1:]]
        best = self._search([prompt], [0], settings, tap)[0][0]
        answer = self._candidate(model_input.text, prompt, best, settings).text
        # After a stop string there is no EOS.
        has_ended = best.finished and not self._should_stop(prompt, settings.stop)(best.ids)
        return best, self._written(model_input, answer, best.ids, has_ended=has_ended)

    def _written(self, model_input: ModelInput, answer: str, ids: Sequence[int], *, has_ended: bool) -> ModelInput:
        after = len(model_input.text) - self._ends_with_a_space(model_input.text)
        return with_output(model_input, self.tokenizer, answer, ids, has_ended=has_ended, after=after)

    def _search(
        self,
        prompts: Sequence[list[int]],
        numbers: Sequence[int],
        settings: DecodeSettings,
        tap: Tap | None = None,
    ) -> list[list[Hypothesis]]:
        """Decode prompts of equal length, which need no padding."""
        ids = torch.tensor(prompts, dtype=torch.long, device=self.model.device)
        return generate(
            self.model,
            prompt=ids.reshape(len(prompts), -1),
            bos=BOS,
            eos=EOS,
            forbidden=_FORBIDDEN,
            settings=settings,
            streams=numbers,
            should_stop=self._should_stop(prompts[0], settings.stop) if settings.stop else None,
            tap=tap,
        )

    def _slide(self, prompt: list[int], settings: DecodeSettings, number: int) -> list[Hypothesis]:
        """Decode a prompt that does not fit in the context together with its continuation."""
        if settings.method == "beam":
            raise DataError(
                _(
                    "text {number} has {n_tokens:,} tokens; with decode.max_new_tokens = {n_new} more they do "
                    "not fit into this model's {max_length:,}. Shorten it, or let the window slide with "
                    'decode.method = "greedy" or "sample".',
                    number=number + 1,
                    n_tokens=len(prompt),
                    n_new=settings.max_length(),
                    max_length=self.model.settings.max_length,
                )
            )
        should_stop = self._should_stop(prompt, settings.stop)
        hypotheses = []
        for sample in range(settings.n_best):
            ids: list[int] = []
            total, n_counted, finished = 0.0, 0, False
            for written in stream(
                self.model,
                prompt,
                bos=BOS,
                eos=EOS,
                forbidden=_FORBIDDEN,
                settings=settings,
                number=number,
                sample=sample,
            ):
                total, n_counted = total + written.log_probability, n_counted + 1
                if written.id != EOS:
                    ids.append(written.id)
                finished = written.id == EOS or should_stop(ids)
                if finished:
                    break
            hypotheses.append(make_hypothesis(ids, total, finished=finished, alpha=settings.alpha, length=n_counted))
        return best_first(hypotheses, settings.n_best)

    def _should_stop(self, prompt: Sequence[int], stops: Sequence[str]) -> StoppingCriterion:
        """A criterion that stops when the ids after a prompt contain a stop string, checking only the newest."""
        n_tokens = 1 + max((len(stop.encode()) for stop in stops), default=0)  # a token has at least one byte

        def should_stop(ids: Sequence[int]) -> bool:
            if len(ids) <= n_tokens:
                text = self.tokenizer.decode_continuation(prompt, ids)
            else:  # the first token is not part of the stop string and may lose its space
                text = self.tokenizer.decode(ids[-n_tokens:])
            return any(stop in text for stop in stops)

        return should_stop

    def _encode(self, prompt: str) -> list[int]:
        """The ids of a prompt; a space at the end is left to the next token if tokens include their space."""
        return self.tokenizer.encode(prompt[:-1] if self._ends_with_a_space(prompt) else prompt)

    def _following(self, prompt: str, text: str) -> str:
        """The text after a prompt, without a space that the prompt already has."""
        return text.removeprefix(" ") if self._ends_with_a_space(prompt) else text

    def _ends_with_a_space(self, prompt: str) -> bool:
        return (
            self.tokenizer.has_prefix and prompt.endswith(" ") and not prompt.endswith(("  ", "\n ")) and prompt != " "
        )

    def _candidate(
        self, prompt: str, ids: Sequence[int], hypothesis: Hypothesis, settings: DecodeSettings
    ) -> Candidate:
        streamer = TextStreamer(self.tokenizer, ids, settings.stop)
        parts = []
        for token_id in hypothesis.ids:
            parts.append(streamer.add(token_id))
            if streamer.is_stopped:
                break
        text = self._following(prompt, "".join([*parts, streamer.finish()]))
        return Candidate(text, hypothesis.log_probability, hypothesis.score, hypothesis.finished)
