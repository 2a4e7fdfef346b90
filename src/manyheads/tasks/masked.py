"""Masked language models: some pieces of a text are hidden, and the model says which they were.

An encoder that has learnt this on a user's own text knows that text's words before it learns a task from labels.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal
from zlib import crc32

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from manyheads.data import Windows, choose_examples, cut_windows, pad, plan_batches
from manyheads.data.chunks import chunks
from manyheads.data.cleaning import Fields
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError, RecipeError
from manyheads.metrics import Tally, share_tally
from manyheads.metrics.masked import MaskedCard, masked_card
from manyheads.model import ModelSettings, Transformer, projected_loss
from manyheads.settings import misfits, refuse
from manyheads.tasks.reading import moved, read_alone
from manyheads.tasks.task import Look, Material, Progress, Reading
from manyheads.text import grammar
from manyheads.text.documents import read_documents
from manyheads.text.readers import Row
from manyheads.text.streams import OnBad
from manyheads.text.tokenizer import BEGIN, PAD, UNKNOWN, Piece, Tokenizer
from manyheads.text.vocabulary import END, SPACE_SIGN
from manyheads.text.words import WordTable

HIDDEN = "[MASK]"  # how a text for `predict` says what is to be found
# No text is ever encoded to UNKNOWN, since bytes spell what is not in the vocabulary: its vector is free.
MASK = UNKNOWN
ACCURACY = "accuracy of hidden pieces"

_FIRST_PIECE = END + 1  # before it are the special ones
_MASKED, _REPLACED = 0.8, 0.1  # of the hidden pieces; the others stay as they are (Devlin 2019)
_MOST_SHARE = 0.4
_TOKENS_AT_ONCE = 4096
_LOOKED_AT = 20_000  # pieces
_GUESSES = 5
_SAMPLES = 4
_SHOWN = 200  # characters of a sample


@dataclass(frozen=True, kw_only=True)
class MaskedSettings:
    """What is hidden of a text."""

    kind: Literal["masked"] = "masked"
    documents: Literal["file", "paragraph", "line"] = "file"  # of plain text; a row of a table is always one
    share: float = 0.15  # of the pieces
    whole_words: bool = False  # pieces of one word are hidden together

    def __post_init__(self) -> None:
        faults = misfits(self, "task.")
        if not faults and not 0 < self.share <= _MOST_SHARE:
            faults.append(f"task.share = {self.share} must be more than 0 and at most {_MOST_SHARE}.")
        refuse(faults)


@dataclass(frozen=True)
class Guess:
    """A piece that may stand where something was hidden, and how probable the model finds it."""

    text: str
    probability: float


@dataclass(frozen=True)
class Filling:
    """A text with its gaps filled."""

    text: str
    gaps: Sequence[Sequence[Guess]]  # for each gap, the most probable pieces, best first

    @property
    def answer(self) -> str:
        """The text with the best piece in each gap."""
        return self.text

    def line(self) -> str:
        """The text in one line."""
        return self.text.replace("\r", " ").replace("\n", " ")


@dataclass(frozen=True)
class MaskedBatch:
    """Texts with some of their pieces hidden."""

    ids: Int[Tensor, "B S"]
    is_hidden: Bool[Tensor, "B S"]
    hidden: Int[Tensor, " N"]  # the pieces that were there, row by row

    @property
    def n_tokens(self) -> int:
        """Those that are to be found: what the loss is averaged over."""
        return len(self.hidden)


@dataclass(frozen=True)
class Hider:
    """Chooses what is hidden."""

    settings: MaskedSettings
    vocabulary: int
    words: WordTable | None  # where whole words are hidden

    @classmethod
    def of(cls, tokenizer: Tokenizer, settings: MaskedSettings) -> "Hider":
        """One for a tokenizer's pieces."""
        words = WordTable.of(tokenizer) if settings.whole_words else None
        return cls(settings, tokenizer.vocabulary, words)

    def hide(self, texts: Sequence[NDArray[np.integer]], seed: int, device: torch.device) -> MaskedBatch:
        """A batch of these texts after BEGIN: a pure function of its arguments."""
        random = np.random.default_rng(seed)
        ids = pad(texts, before=BEGIN)
        is_hidden = np.zeros(ids.shape, dtype=np.bool_)
        for row, text in enumerate(texts):
            is_hidden[row, 1 : len(text) + 1] = self._choose(text, random)
        hidden = ids[is_hidden]
        fate = random.random(len(hidden))
        others = random.integers(_FIRST_PIECE, self.vocabulary, size=len(hidden))
        ids[is_hidden] = np.where(fate < _MASKED, MASK, np.where(fate < _MASKED + _REPLACED, others, hidden))
        return MaskedBatch(*(torch.from_numpy(array).to(device) for array in (ids, is_hidden, hidden)))

    def _choose(self, text: NDArray[np.integer], random: np.random.Generator) -> NDArray[np.bool_]:
        """About the share of a text's pieces, one at least: those of the words whose lots come first."""
        wanted = max(1, round(self.settings.share * len(text)))
        numbers = np.arange(len(text)) if self.words is None else self.words.number(text)
        lots = random.permutation(int(numbers[-1]) + 1 if len(numbers) else 0)
        # Of the words in the order of their lots, as many as are needed.
        sizes = np.bincount(numbers)[np.argsort(lots)]
        n_words = int(np.searchsorted(np.cumsum(sizes), wanted)) + 1
        return np.asarray(lots[numbers] < n_words)


@dataclass(frozen=True)
class MaskedLesson:
    """What the training loop sees of this task."""

    task: "Masked"
    material: Material

    def plan(self, epoch: int) -> list[Windows]:
        """Windows of the documents, those of like length together."""
        material = self.material
        chosen = choose_examples(material.boundaries, material.weights, seed=material.seed, epoch=epoch)
        lengths = material.encoded.lengths[:, 0] - 1
        lengths = lengths if chosen is None else lengths[chosen]
        windows = cut_windows(lengths, self.task.limit, seed=material.seed, epoch=epoch)
        if chosen is not None:
            windows[:, 0] = chosen[windows[:, 0]]
        sizes = (windows[:, 2] - windows[:, 1] + 1)[:, None]
        batches = plan_batches(sizes, material.batch_tokens, seed=material.seed, epoch=epoch)
        return [windows[batch] for batch in batches]

    def make(self, plan: Windows, seed: int) -> MaskedBatch:
        """One batch; what is hidden in it is a function of the seed."""
        column = self.material.encoded.columns[0]
        texts = [column[document][start:end].astype(np.int64) for document, start, end in plan.tolist()]
        batch = self.task.hider.hide(texts, seed, self.task.model.output.weight.device)
        self.material.encoded.let_go()
        return batch

    def loss(self, batch: MaskedBatch, step: int) -> Tensor:
        """Cross-entropy per hidden piece; no other is even projected."""
        model = self.task.model
        hidden = model.encode(batch.ids, batch.ids != PAD)
        return projected_loss(hidden[batch.is_hidden][None], model.output.weight, batch.hidden, 0.0)

    def describe(self, plan: Windows) -> str:
        """How many windows a batch has, and how the first three begin."""
        column = self.material.encoded.columns[0]
        beginnings = [column[document][start : start + 20] for document, start, _ in plan[:3].tolist()]
        texts = [self.task.tokenizer.decode(ids.tolist()) for ids in beginnings]
        return f"{len(plan)} windows, {', '.join(f'“{text}…”' for text in texts)}{' …' if len(plan) > 3 else ''}"


@dataclass(frozen=True)
class Masked:
    """A model that finds what is hidden in a text."""

    shape: ClassVar[str] = "encoder"
    noun: ClassVar[str] = "documents"
    counted: ClassVar[str] = "masked"
    metrics: ClassVar[tuple[str, ...]] = (ACCURACY,)
    settings_type: ClassVar[type] = MaskedSettings

    model: Transformer
    tokenizer: Tokenizer
    settings: MaskedSettings

    @property
    def module(self) -> Transformer:
        """All that learns is the model itself."""
        return self.model

    @staticmethod
    def fields(settings: MaskedSettings) -> tuple[str, ...]:
        """A document."""
        return ("text",)

    @staticmethod
    def cleaning(settings: MaskedSettings) -> Fields:
        """It is a text."""
        return Fields(n_fields=1, n_texts=1)

    @staticmethod
    def read(
        files: Sequence[str], columns: Mapping[str, str], settings: MaskedSettings, on_bad: OnBad | None = None
    ) -> Iterator[Row]:
        """Documents from any number of files."""
        return read_documents(files, settings.documents, columns.get("text"), on_bad=on_bad)

    @staticmethod
    def builtin(settings: MaskedSettings, languages: Sequence[str], split: str, count: int, seed: int) -> Iterable[Row]:
        """Stories."""
        (language,) = languages
        return grammar.rows("generate", language, split, count, seed)

    @staticmethod
    def lines(rows: Iterable[Row]) -> Iterator[str]:
        """The documents themselves."""
        return (text for (text,) in rows)

    @staticmethod
    def encode_rows(rows: Sequence[Row], tokenizer: Tokenizer, settings: MaskedSettings) -> list[list[list[int]]]:
        """The pieces of each document."""
        return [tokenizer.encode_many([text for (text,) in rows])]

    @staticmethod
    def longest(model: ModelSettings, settings: MaskedSettings) -> int:
        """Any number: documents are cut into windows."""
        return 0

    @classmethod
    def begin(
        cls, model: Transformer, tokenizer: Tokenizer, settings: MaskedSettings, rows: Iterable[Row] = ()
    ) -> "Masked":
        """A model that has learnt nothing yet."""
        return cls(model, tokenizer, settings)

    @classmethod
    def restore(
        cls, model: Transformer, tokenizer: Tokenizer, settings: MaskedSettings, facts: Mapping[str, Any]
    ) -> "Masked":
        """There is nothing to know besides."""
        return cls(model, tokenizer, settings)

    def facts(self) -> dict[str, Any]:
        """Nothing that is not in the settings."""
        return {}

    def lesson(self, material: Material) -> MaskedLesson:
        """What the training loop sees of it."""
        if material.sampling:
            raise RecipeError(
                f"tokenizer.sampling = {material.sampling}: a masked language model learns from stored pieces. Use 0."
            )
        return MaskedLesson(self, material)

    @cached_property
    def hider(self) -> Hider:
        """What chooses the pieces that are hidden."""
        return Hider.of(self.tokenizer, self.settings)

    @property
    def limit(self) -> int:
        """How many pieces are read at once: one place is for BEGIN."""
        return self.model.settings.max_length - 1

    def check(self, text: str, where: str) -> None:
        """Refuse a text without a gap, or too long for the model."""
        self._with_gaps(text, where)

    def reading(self, text: str, answer: str | None = None) -> Reading:
        """BEGIN and the pieces of a text, in which any [MASK] is one."""
        return read_alone(self.tokenizer, text, answer, self._pieces(text), limit=self.limit)

    def usable(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Those that are not empty."""
        return (row for row in rows if row[0])

    def finish(self, rows: Sequence[Row]) -> "Masked":
        """There is nothing more to learn."""
        return self

    def look(self, rows: Sequence[Row], metric: str) -> Look:
        """Find what is hidden, always the same pieces, in as much of the rows as is looked at quickly."""
        windows, n_pieces = [], 0
        for window in self._windows(text for (text,) in rows):
            windows.append(window)
            n_pieces += len(window)
            if n_pieces >= _LOOKED_AT:
                break
        found = [part for part in self._find(windows) if len(part.hidden)]
        score = 100.0 * sum(part.n_right for part in found) / max(1, sum(len(part.hidden) for part in found))
        return Look(metric, score, [self._sample(part) for part in found[:_SAMPLES]])

    def tally(self, rows: Sequence[Row], settings: DecodeSettings) -> Tally:
        """The share of hidden pieces that are found."""
        n_right, n_hidden, _ = self._count(rows)
        return share_tally("accuracy of hidden pieces", n_right, n_hidden)

    def score(
        self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None
    ) -> MaskedCard:
        """Find what is hidden in every document, always the same pieces."""
        how = f"share:{self.settings.share}{'|whole words' if self.settings.whole_words else ''}"
        n_right, n_hidden, nats = self._count(rows, progress)
        return masked_card(n_right, n_hidden, nats, how=how)

    def _count(self, rows: Iterable[Row], progress: Progress = lambda done: None) -> list[list[float]]:
        """Of each document: how many hidden pieces are found, how many there are, how many nats they cost."""
        counts: list[NDArray[np.float64]] = []
        for chunk in chunks(row for row in rows if row[0]):
            texts = [list(self._windows([text])) for (text,) in chunk]
            owners = [number for number, windows in enumerate(texts) for _ in windows]
            sums = np.zeros((len(texts), 3))
            for owner, part in zip(
                owners, self._find([window for windows in texts for window in windows]), strict=True
            ):
                sums[owner] += (part.n_right, len(part.hidden), float(part.nats.sum()))
            counts += list(sums)
            progress(len(texts))
        columns: list[list[float]] = np.stack(counts).T.tolist() if counts else [[], [], []]
        return columns

    def _windows(self, texts: Iterable[str]) -> Iterator[NDArray[np.int64]]:
        """The pieces of each text, cut where the model cannot read on."""
        for text in texts:
            ids = np.array(self.tokenizer.encode(text), dtype=np.int64)
            yield from (ids[start : start + self.limit] for start in range(0, len(ids), self.limit))

    def _find(self, windows: Sequence[NDArray[np.int64]]) -> list["_Found"]:
        """What the model takes the hidden pieces of each window for; each window is hidden from by itself."""
        device = self.model.output.weight.device
        # One by one, so that neither neighbours nor order change what is hidden.
        single = [self.hider.hide([window], crc32(window.tobytes()), device) for window in windows]
        found: list[_Found | None] = [None] * len(windows)
        sizes = np.array([[len(window) + 1] for window in windows], dtype=np.int64).reshape(-1, 1)
        for batch in plan_batches(sizes, _TOKENS_AT_ONCE, seed=0, epoch=0):
            rows = [single[index] for index in batch.tolist()]
            ids = torch.from_numpy(pad([row.ids[0].cpu().numpy() for row in rows])).to(device)
            vectors = self._vectors(ids)
            for index, row, vector in zip(batch.tolist(), rows, vectors, strict=True):
                logs = self._log_chances(vector[: row.ids.size(1)][row.is_hidden[0]])
                nats = -logs.gather(1, row.hidden[:, None]).squeeze(1)
                found[index] = _Found(row.ids[0], row.hidden, logs.argmax(-1), nats)
        return [part for part in found if part is not None]

    def _vectors(self, ids: Int[Tensor, "B S"]) -> Float[Tensor, "B S W"]:
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                return self.model.encode(ids, ids != PAD)
        finally:
            self.model.train(was_training)

    def _log_chances(self, vectors: Float[Tensor, "N W"]) -> Float[Tensor, "N V"]:
        """Of every piece; special ones are none."""
        logits = self.model.output.logits(vectors).detach().float()
        logits[:, :_FIRST_PIECE] = -torch.inf
        return logits.log_softmax(-1)

    def _sample(self, part: "_Found") -> tuple[str, str, str]:
        """The text with its gaps, what the model put there, what was there."""
        text = HIDDEN.join(self.tokenizer.decode(run) for run in _split(part.ids[1:].tolist()))
        guessed, hidden = (
            " ".join(self.tokenizer.decode([number]) for number in numbers.tolist())
            for numbers in (part.guessed, part.hidden)
        )
        return text[:_SHOWN], guessed[:_SHOWN], hidden[:_SHOWN]

    def predict(self, texts: Sequence[str], settings: DecodeSettings, first: int = 0) -> list[Filling]:
        """Each text with the most probable piece in every gap."""
        encoded = [self._with_gaps(text, f"text {number}") for number, text in enumerate(texts, start=first + 1)]
        sizes = np.array([[len(ids)] for ids in encoded], dtype=np.int64).reshape(-1, 1)
        found: dict[int, Filling] = {}
        for batch in plan_batches(sizes, _TOKENS_AT_ONCE, seed=0, epoch=0):
            rows = batch.tolist()
            ids = torch.from_numpy(pad([encoded[row] for row in rows], before=BEGIN)).to(
                self.model.output.weight.device
            )
            for row, vectors, own in zip(rows, self._vectors(ids), ids, strict=True):
                found[row] = self._fill(encoded[row], self._log_chances(vectors[own == MASK]))
        return [found[row] for row in range(len(texts))]

    def _fill(self, ids: Sequence[int], logs: Float[Tensor, "N V"]) -> Filling:
        best = logs.topk(min(_GUESSES, logs.size(1)))
        chosen = iter(best.indices[:, 0].tolist())
        text = self.tokenizer.decode([next(chosen) if piece_id == MASK else piece_id for piece_id in ids])
        gaps = [
            [
                Guess(self.tokenizer.piece(piece_id).replace(SPACE_SIGN, " "), chance)
                for piece_id, chance in zip(*guesses, strict=True)
            ]
            for guesses in zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
        ]
        return Filling(text, gaps)

    def _with_gaps(self, text: str, where: str) -> list[int]:
        """The ids of a text, each [MASK] in it being one hidden piece; the space before it is the piece's own."""
        if HIDDEN not in text:
            raise DataError(f"{where} has no {HIDDEN}: write it where a piece is to be found.")
        ids = [piece.id for piece in self._pieces(text)]
        if len(ids) > self.limit:
            raise DataError(f"{where} has {len(ids):,} pieces; this model reads at most {self.limit:,}. Split it up.")
        return ids

    def _pieces(self, text: str) -> Iterator[Piece]:
        """The pieces of a text with their places, each [MASK] in it being one."""
        parts = text.split(HIDDEN)
        start = 0
        for number, part in enumerate(parts):
            is_last = number == len(parts) - 1
            kept = part if is_last else self._without_space(part)
            ids = self.tokenizer.encode_inner(kept) if number else self.tokenizer.encode(kept)
            yield from moved(self.tokenizer.places(ids, is_inner=number > 0), start, len(text))
            if not is_last:
                end = start + len(part) + len(HIDDEN)
                yield Piece(HIDDEN, MASK, start + len(kept), end)
                start = end

    def _without_space(self, text: str) -> str:
        """Of text before a gap: where words are pieces with their space, that belongs to what is hidden."""
        return text.removesuffix(" ") if self.tokenizer.has_prefix else text


@dataclass(frozen=True)
class _Found:
    """One window: what the model read of it, what was hidden, what it took that for, and how surprised it was."""

    ids: Int[Tensor, " S"]
    hidden: Int[Tensor, " N"]
    guessed: Int[Tensor, " N"]
    nats: Float[Tensor, " N"]

    @property
    def n_right(self) -> int:
        """How many were found."""
        return int((self.guessed == self.hidden).sum())


def _split(ids: Sequence[int]) -> list[list[int]]:
    """The runs of ids between gaps."""
    runs: list[list[int]] = [[]]
    for piece_id in ids:
        if piece_id == MASK:
            runs.append([])
        else:
            runs[-1].append(piece_id)
    return runs
