"""Tagging: the spans of a text that mean something, each with its label; and, joint with them, the text's intent."""

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from manyheads.data import choose_examples, pad, plan_batches
from manyheads.data.cleaning import Fields
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError
from manyheads.metrics import IntentRule, SpanCard, Tally, f1_tally, span_card
from manyheads.model import ModelSettings, Transformer, disagreement
from manyheads.settings import misfits, refuse
from manyheads.tasks.chain import Chain, States
from manyheads.tasks.pooling import Pool, Pooling
from manyheads.tasks.reading import fit_temperature, like_lengths, moved, read_alone, windows
from manyheads.tasks.seq2seq import one_line
from manyheads.tasks.task import Look, Material, Progress, Reading
from manyheads.text import grammar
from manyheads.text.conll import read_tagged
from manyheads.text.missing import shortened
from manyheads.text.readers import Row
from manyheads.text.spans import Span, spans_of
from manyheads.text.streams import OnBad
from manyheads.text.tokenizer import BEGIN, PAD, Tokenizer
from manyheads.text.units import UnitKind, choose_kind, units_of

_MOST_KNOWN = 500_000  # units whose pieces are remembered

Mentions = Mapping[str, Sequence[tuple[str, ...]]]  # of each label, what was so called, as often as it was


@dataclass(frozen=True, kw_only=True)
class TagSettings:
    """How tags are chosen and learnt, and whether each text has an intent besides."""

    kind: Literal["tag"] = "tag"
    decoder: Literal["constrained", "crf"] = "crf"  # whether the steps from tag to tag are learnt, or only valid
    head_dropout: float = 0.2  # of what the tags are chosen by
    swapping: float = 0.0  # of training spans, the share put in place of by another span of the same label
    smoothing: float = 0.0  # ε of label smoothing; with "crf" only of intents
    consistency: float = 0.0  # R-Drop's α: how much two passes with different dropout have to agree; 0: one pass

    intents: bool = False  # whether rows have a label besides their tags
    pooling: Pooling = "mean-max"  # how the pieces' vectors become the one that the intent is told by
    intent_weight: float = 0.3  # of the intent's loss beside that of the tags
    intent_rule: IntentRule = "strict"  # whether "a#b" is right only as a whole, or "a" is right too
    separator: str = "#"

    def __post_init__(self) -> None:
        refuse(misfits(self, "task.") or self._faults())

    def _faults(self) -> list[str]:
        faults = [
            f"task.{name} = {getattr(self, name)} must be at least 0 and less than 1."
            for name in ("head_dropout", "smoothing")
            if not 0.0 <= getattr(self, name) < 1.0
        ]
        if not 0.0 <= self.swapping <= 1.0:
            faults.append(f"task.swapping = {self.swapping} must be at least 0 and at most 1.")
        faults += [
            f"task.{name} = {getattr(self, name)} must be at least 0 and finite."
            for name in ("consistency", "intent_weight")
            if not 0.0 <= getattr(self, name) < math.inf
        ]
        return faults


@dataclass(frozen=True)
class Entity:
    """A span of a raw text: `text` is what stands there from character `start` up to `end`."""

    start: int
    end: int
    label: str
    text: str
    probability: float  # that exactly this is a span of this label


@dataclass(frozen=True)
class Tagging:
    """What was found in one text."""

    text: str
    spans: tuple[Entity, ...]
    label: str = ""  # the intent, of a model that knows intents
    probabilities: Mapping[str, float] = field(default_factory=dict)  # of every intent, the likeliest first

    @property
    def answer(self) -> tuple[Entity, ...]:
        """The spans."""
        return self.spans

    def line(self) -> str:
        """The text with its spans marked [like this](label); before it the intent, if any, and a tab."""
        parts, place = [], 0
        for span in self.spans:
            parts += [self.text[place : span.start], f"[{span.text}]({span.label})"]
            place = span.end
        told = one_line("".join([*parts, self.text[place:]]))
        return f"{self.label}\t{told}" if self.label else told


class Tagger(nn.Module):
    """A Transformer that reads pieces; a unit is the mean of its pieces, and one linear layer scores its tags."""

    def __init__(self, model: Transformer, states: States, n_intents: int, settings: TagSettings) -> None:
        super().__init__()
        self.model = model
        self.dropout = nn.Dropout(settings.head_dropout)
        self.output = nn.Linear(model.settings.width, len(states))
        self.chain = Chain(states, learned=settings.decoder == "crf")
        if settings.intents:
            self.pool = Pool(settings.pooling, model.settings.width)
            self.intent = nn.Linear(self.pool.width, n_intents)

    def forward(
        self, ids: Int[Tensor, "B S"], units: Int[Tensor, "B S"], n_units: int
    ) -> tuple[Float[Tensor, "B T K"], Float[Tensor, "B C"] | None]:
        """The scores of each unit's tags, and of each text's intents; `units` says whose pieces these are.

        What belongs to no unit (BEGIN, padding) has the number `n_units`.
        """
        is_real: Bool[Tensor, "B S"] = ids != PAD
        hidden = self.model.encode(ids, is_real)
        pooled = self.dropout(_mean_by(hidden, units, n_units + 1)[:, :n_units])
        intents = self.intent(self.dropout(self.pool(hidden, is_real))) if hasattr(self, "intent") else None
        return self.output(pooled), intents


def _mean_by(x: Float[Tensor, "B S W"], owners: Int[Tensor, "B S"], n_owners: int) -> Float[Tensor, "B O W"]:
    """The mean of each owner's vectors; of who has none, zeros."""
    flat = (owners + n_owners * torch.arange(len(owners), device=owners.device)[:, None]).flatten()
    size = n_owners * len(owners)
    sums = x.new_zeros(size, x.size(-1)).index_add(0, flat, x.flatten(0, 1))
    counts = x.new_zeros(size).index_add(0, flat, x.new_ones(len(flat)))
    return (sums / counts.clamp(min=1.0)[:, None]).unflatten(0, (len(owners), n_owners))


@dataclass(frozen=True)
class UnitBatch:
    """Texts as ids, which unit each id is of, and which units are real."""

    ids: Int[Tensor, "B S"]
    units: Int[Tensor, "B S"]
    is_real: Bool[Tensor, "B T"]

    @classmethod
    def of(cls, texts: Sequence[Sequence[Sequence[int]]], device: torch.device) -> "UnitBatch":
        """Texts given as the pieces of each of their units; BEGIN is put before them."""
        n_units = [len(text) for text in texts]
        longest = max(n_units)
        ids = pad([[number for unit in text for number in unit] for text in texts], before=BEGIN)
        units = np.full_like(ids, longest)
        for row, text in zip(units, texts, strict=True):
            owners = np.repeat(np.arange(len(text)), [len(unit) for unit in text])
            row[1 : 1 + len(owners)] = owners
        is_real = np.arange(longest) < np.array(n_units)[:, None]
        return cls(*(torch.from_numpy(array).to(device) for array in (ids, units, is_real)))


@dataclass(frozen=True)
class TaggedBatch:
    """A batch of units with their tags, as states of the chain, and with each text's intent."""

    read: UnitBatch
    paths: Int[Tensor, "B T"]
    intents: Int[Tensor, " B"]

    @property
    def n_tokens(self) -> int:
        """Units: what the loss is averaged over."""
        return int(self.read.is_real.sum())


@dataclass(frozen=True)
class TagLesson:
    """What the training loop sees of this task."""

    task: "Tag"
    material: Material
    known: dict[str, list[int]] = field(default_factory=dict)  # of units, their pieces

    def plan(self, epoch: int) -> list[NDArray[np.int64]]:
        """Batches of like lengths, as indices."""
        material = self.material
        chosen = choose_examples(material.boundaries, material.weights, seed=material.seed, epoch=epoch)
        lengths = material.encoded.lengths[:, :1]
        return plan_batches(lengths, material.batch_tokens, seed=material.seed, epoch=epoch, chosen=chosen)

    def make(self, plan: NDArray[np.int64], seed: int) -> TaggedBatch:
        """One batch, its spans swapped and its pieces sampled where the recipe asks for it."""
        chance = random.Random(seed)
        encoded, task = self.material.encoded, self.task
        rows = [self._row(row, chance) for row in plan.tolist()]
        intents = [task.intent_number(encoded.text(2, row)) if task.settings.intents else 0 for row in plan.tolist()]
        encoded.let_go()
        device = task.module.output.weight.device
        paths = pad([task.states.path_of(tags) for _, tags in rows])
        return TaggedBatch(
            UnitBatch.of([pieces for pieces, _ in rows], device),
            torch.from_numpy(paths).to(device),
            torch.tensor(intents, device=device),
        )

    def _row(self, row: int, chance: random.Random) -> tuple[list[list[int]], list[str]]:
        """The pieces of a row's units, and the tags."""
        encoded, swapping = self.material.encoded, self.task.settings.swapping
        tags = encoded.text(1, row).split(" ")
        if swapping or self.material.sampling:
            units = encoded.text(0, row).split(" ")
            new_units, new_tags = swapped(units, tags, self.task.mentions, swapping, chance)
            pieces = self._cut(new_units, chance)
            if pieces is not None:
                return pieces, new_tags
        ids, sizes = (encoded.columns[column][row] for column in (0, 1))
        return [part.tolist() for part in np.split(ids, np.cumsum(sizes)[:-1])], tags

    def _cut(self, units: Sequence[str], chance: random.Random) -> list[list[int]] | None:
        """The units' pieces, unless they are more than the model reads."""
        if self.material.sampling:
            cut = self.task.tokenizer.sample_many(units, self.material.sampling, chance.getrandbits(32))
        else:
            cut = self._pieces(units)
        return cut if sum(map(len, cut)) <= self.task.limit else None

    def _pieces(self, units: Sequence[str]) -> list[list[int]]:
        """The units' likeliest pieces, remembered: rows come one by one, and meet the same units all the time."""
        new = list({unit for unit in units if unit not in self.known})
        if len(self.known) > _MOST_KNOWN:
            self.known.clear()
            new = list(set(units))
        self.known.update(zip(new, self.task.tokenizer.encode_many(new), strict=True))
        return [self.known[unit] for unit in units]

    def loss(self, batch: TaggedBatch, step: int) -> Tensor:
        """That of the tags per unit, of the intents per text, and R-Drop's term where the settings want it."""
        settings, read = self.task.settings, batch.read
        n_passes = 2 if settings.consistency else 1
        scores, intents = self.task.module(
            read.ids.repeat(n_passes, 1), read.units.repeat(n_passes, 1), read.is_real.size(1)
        )
        loss = torch.stack([self._tag_loss(part, batch) for part in scores.chunk(n_passes)]).mean()
        if settings.consistency:
            one, other = scores.chunk(2)
            loss = loss + 0.5 * settings.consistency * disagreement(one[read.is_real], other[read.is_real])
        if intents is not None:
            told = F.cross_entropy(intents, batch.intents.repeat(n_passes), label_smoothing=settings.smoothing)
            if settings.consistency:
                told = told + 0.5 * settings.consistency * disagreement(*intents.chunk(2))
            loss = loss + settings.intent_weight * told
        return loss

    def _tag_loss(self, scores: Float[Tensor, "B T K"], batch: TaggedBatch) -> Tensor:
        is_real, settings = batch.read.is_real, self.task.settings
        if settings.decoder == "crf":
            return -self.task.module.chain.log_probability(scores, batch.paths, is_real).sum() / is_real.sum()
        return F.cross_entropy(scores[is_real], batch.paths[is_real], label_smoothing=settings.smoothing)

    def describe(self, plan: NDArray[np.int64]) -> str:
        """How many texts a batch has, and its first three."""
        told = ", ".join(f"“{shortened(self.material.encoded.text(0, row))}”" for row in plan[:3].tolist())
        return f"{len(plan)} texts, {told}{' …' if len(plan) > 3 else ''}"


@dataclass(frozen=True)
class Found:
    """The model's judgement of one text: its best path and the scores behind it."""

    path: Sequence[int]
    scores: Float[Tensor, "T K"]
    intents: Float[Tensor, " C"]  # logits


@dataclass(frozen=True)
class Tag:
    """A model that finds spans. Texts longer than the model reads are read in windows whose scores are averaged."""

    shape: ClassVar[str] = "encoder"
    noun: ClassVar[str] = "tagged texts"
    counted: ClassVar[str] = "units"
    metrics: ClassVar[tuple[str, ...]] = ("F1", "exact sentences", "intent accuracy")
    settings_type: ClassVar[type] = TagSettings

    module: Tagger
    tokenizer: Tokenizer
    settings: TagSettings
    states: States
    intents: tuple[str, ...]
    unit: UnitKind  # what the training rows were cut into, and raw text will be
    temperature: float = 1.0  # of intents
    mentions: Mentions = field(default_factory=dict)  # for training only

    @property
    def model(self) -> Transformer:
        """The Transformer inside."""
        return self.module.model

    @staticmethod
    def fields(settings: TagSettings) -> tuple[str, ...]:
        """Units, their tags and, joint with them, an intent."""
        return ("text", "tags", "label") if settings.intents else ("text", "tags")

    @staticmethod
    def cleaning(settings: TagSettings) -> Fields:
        """Only the units are text."""
        return Fields(n_fields=len(Tag.fields(settings)), n_texts=1)

    @staticmethod
    def read(
        files: Sequence[str], columns: Mapping[str, str], settings: TagSettings, on_bad: OnBad | None = None
    ) -> Iterator[Row]:
        """Rows of CoNLL columns, of parallel files, or of one file with columns; tags of any scheme become IOB2."""
        return read_tagged(
            files,
            word_column=columns.get("text"),
            tag_column=columns.get("tags"),
            label_column=columns.get("label"),
            joint=settings.intents,
            on_bad=on_bad,
        )

    @staticmethod
    def builtin(settings: TagSettings, languages: Sequence[str], split: str, count: int, seed: int) -> Iterable[Row]:
        """Sentences with who, what, where and when in them; their intents where these are wanted."""
        (language,) = languages
        return grammar.rows("intents" if settings.intents else "tag", language, split, count, seed)

    @staticmethod
    def lines(rows: Iterable[Row]) -> Iterator[str]:
        """The units, as they are joined."""
        return (row[0] for row in rows)

    @staticmethod
    def encode_rows(rows: Sequence[Row], tokenizer: Tokenizer, settings: TagSettings) -> list[list[list[int]]]:
        """The pieces of each text, and how many of them each unit has.

        A unit's pieces are those it has on its own: with a space before it, just as where units are joined.
        """
        texts = [row[0].split(" ") for row in rows]
        units = list({unit for text in texts for unit in text})
        pieces = dict(zip(units, tokenizer.encode_many(units), strict=True))
        ids = [[number for unit in text for number in pieces[unit]] for text in texts]
        return [ids, [[len(pieces[unit]) for unit in text] for text in texts]]

    @staticmethod
    def longest(model: ModelSettings, settings: TagSettings) -> int:
        """One place is for BEGIN."""
        return model.max_length - 1

    @classmethod
    def begin(cls, model: Transformer, tokenizer: Tokenizer, settings: TagSettings, rows: Iterable[Row]) -> "Tag":
        """A tagger that has learnt nothing yet; its labels and intents are those of the rows."""
        mentions: dict[str, list[tuple[str, ...]]] = {}
        intents: Counter[str] = Counter()
        lengths: Counter[int] = Counter()
        for row in rows:
            units = row[0].split(" ")
            lengths.update(map(len, units))
            for start, end, label in _stretches(row[1].split(" ")):
                known = mentions.setdefault(label, [])
                if settings.swapping:
                    known.append(tuple(units[start:end]))
            intents.update(row[2:])
        if not mentions:
            raise DataError("There is nothing to find: every tag is O. Give rows with spans, or choose another column.")
        if settings.intents and len(intents) < 2:
            raise DataError(f"Every row has the intent “{next(iter(intents), '')}”. Set task.intents = false.")
        facts = {
            "labels": sorted(mentions),
            "intents": sorted(intents),
            "unit": choose_kind(lengths),
            "temperature": 1.0,
        }
        return replace(cls.restore(model, tokenizer, settings, facts), mentions=mentions)

    @classmethod
    def restore(
        cls, model: Transformer, tokenizer: Tokenizer, settings: TagSettings, facts: Mapping[str, Any]
    ) -> "Tag":
        """The tagger with these labels and intents."""
        states, intents = States(list(map(str, facts["labels"]))), tuple(map(str, facts["intents"]))
        module = Tagger(model, states, len(intents), settings)
        return cls(module, tokenizer, settings, states, intents, facts["unit"], float(facts["temperature"]))

    def facts(self) -> dict[str, Any]:
        """The labels, the intents, what a unit is, and the temperature of the intents' probabilities."""
        return {
            "labels": list(self.states.kinds),
            "intents": list(self.intents),
            "unit": self.unit,
            "temperature": self.temperature,
        }

    @property
    def limit(self) -> int:
        """How many pieces are read at once: one place is for BEGIN."""
        return self.model.settings.max_length - 1

    def intent_number(self, intent: str) -> int:
        """Which of the intents this is; −1 of one that was never seen."""
        return self.intents.index(intent) if intent in self.intents else -1

    def lesson(self, material: Material) -> TagLesson:
        """What the training loop sees of it."""
        return TagLesson(self, material)

    def check(self, text: str, where: str) -> None:
        """Every text can be read."""

    def reading(self, text: str, answer: str | None = None) -> Reading:
        """BEGIN and the pieces of each unit of a text, which fit into one window."""
        pieces = (
            piece
            for unit in units_of(text, self.unit)
            for piece in moved(self.tokenizer.each_piece(unit.text), unit.start, unit.end)
        )
        return read_alone(self.tokenizer, text, answer, pieces, limit=self.limit)

    def usable(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Those that are not blank."""
        return (row for row in rows if row[0].strip())

    @torch.no_grad()
    def judge(self, texts: Sequence[Sequence[str]], progress: Progress = lambda done: None) -> list[Found]:
        """Of each text, given as its units, the best path; of a text without any, an empty one."""
        names = list({unit for units in texts for unit in units})
        pieces = dict(zip(names, self.tokenizer.encode_many(names), strict=True))
        cut = [[pieces[unit] for unit in units] for units in texts]
        scores = [torch.zeros(len(units), len(self.states)) for units in texts]
        seen = [torch.zeros(len(units), 1) for units in texts]
        intents = torch.zeros(len(texts), len(self.intents))
        n_parts = torch.zeros(len(texts), 1)
        parts = [
            (text, start, end)
            for text, units in enumerate(cut)
            for start, end in windows([len(unit) for unit in units], self.limit)
            if units
        ]
        device = self.module.output.weight.device
        for batch in like_lengths([1 + sum(map(len, cut[text][start:end])) for text, start, end in parts]):
            chosen = [parts[part] for part in batch]
            read = UnitBatch.of([cut[text][start:end] for text, start, end in chosen], device)
            found, told = self.module(read.ids, read.units, read.is_real.size(1))
            for row, (text, start, end) in enumerate(chosen):
                scores[text][start:end] += found[row, : end - start].float().cpu()
                seen[text][start:end] += 1.0
                n_parts[text] += 1.0
                if told is not None:
                    intents[text] += told[row].float().cpu()
            progress(sum(start == 0 for _, start, _ in chosen))
        scores = [total / times for total, times in zip(scores, seen, strict=True)]
        paths = self._paths(scores)
        means = intents / n_parts.clamp(min=1.0)
        return [Found(path, own, mean) for path, own, mean in zip(paths, scores, means, strict=True)]

    def _paths(self, scores: Sequence[Float[Tensor, "_ K"]]) -> list[list[int]]:
        paths: list[list[int]] = [[] for _ in scores]
        wanted = [number for number, units in enumerate(scores) if len(units)]
        for batch in like_lengths([len(scores[number]) * (1 + len(self.states) // 16) for number in wanted]):
            texts = [wanted[number] for number in batch]
            padded, is_real = _padded([scores[text] for text in texts])
            device = self.module.output.weight.device
            for text, path in zip(
                texts, self.module.chain.best_paths(padded.to(device), is_real.to(device)), strict=True
            ):
                paths[text] = path
        return paths

    def look(self, rows: Sequence[Row], metric: str) -> Look:
        """Tag each row."""
        card, answers = self._card(rows, n_resamples=1)
        scores = {score.name: score.value for score in card.scores}
        samples = [
            (row[0], _told(row[0], answer), _told(row[0], spans_of(row[1].split(" "), "IOB2")))
            for row, answer in zip(rows, answers, strict=True)
        ]
        metric = metric if metric in scores else "F1"
        return Look(metric, scores[metric], samples)

    def finish(self, rows: Sequence[Row]) -> "Tag":
        """With the temperature that makes the intents of the valid rows likeliest."""
        if not self.settings.intents:
            return self
        known = [row for row in self.usable(rows) if row[2] in self.intents]
        if not known:
            return self
        logits = torch.stack([found.intents for found in self.judge([row[0].split(" ") for row in known])])
        numbers = torch.tensor([self.intent_number(row[2]) for row in known])
        wanted = F.one_hot(numbers, len(self.intents)).float()
        return replace(self, temperature=fit_temperature(logits, wanted, several=False))

    def predict(self, texts: Sequence[str], settings: DecodeSettings, first: int = 0) -> list[Tagging]:
        """The spans of each text, in characters of it as it was given."""
        cut = [units_of(text, self.unit) for text in texts]
        judged = self.judge([[unit.text for unit in units] for units in cut])
        taggings = []
        for text, units, found in zip(texts, cut, judged, strict=True):
            spans = self.states.spans(found.path)
            chances = self._chances(found, spans)
            entities = [
                Entity(start, end, span.label, text[start:end], chance)
                for span, chance in zip(spans, chances, strict=True)
                for start, end in [(units[span.start].start, units[span.end - 1].end)]
            ]
            taggings.append(Tagging(text, tuple(entities), *self._intent(found, bool(units))))
        return taggings

    def _intent(self, found: Found, is_there: bool) -> tuple[str, dict[str, float]]:
        if not self.settings.intents or not is_there:
            return "", {}
        chances = (found.intents / self.temperature).softmax(-1).tolist()
        ranked = dict(sorted(zip(self.intents, chances, strict=True), key=lambda item: -item[1]))
        return next(iter(ranked)), ranked

    @torch.no_grad()
    def _chances(self, found: Found, spans: Sequence[Span]) -> list[float]:
        """How probable each span is: the share of the valid paths that pass through all of its states."""
        if not spans:
            return []
        rows = found.scores.repeat(1 + len(spans), 1, 1)  # in the first row nothing is asked for
        for row, span in zip(rows[1:], spans, strict=True):
            for place in range(span.start, span.end):
                others = torch.arange(len(self.states)) != found.path[place]
                row[place, others] = -torch.inf
        device = self.module.output.weight.device
        is_real = torch.ones(rows.shape[:2], dtype=torch.bool, device=device)
        totals = self.module.chain.log_total(rows.to(device), is_real).cpu()
        return (totals[1:] - totals[0]).exp().clamp(max=1.0).tolist()

    def tally(self, rows: Sequence[Row], settings: DecodeSettings) -> Tally:
        """F1 of spans."""
        found = [set(self.states.spans(one.path)) for one in self.judge([row[0].split(" ") for row in rows])]
        return f1_tally("F1", [set(spans_of(row[1].split(" "), "IOB2")) for row in rows], found)

    def score(self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None) -> SpanCard:
        """Tag every row and compare."""
        return self._card(list(rows), progress=progress)[0]

    def _card(
        self, rows: Sequence[Row], progress: Progress = lambda done: None, n_resamples: int = 1000
    ) -> tuple[SpanCard, list[list[Span]]]:
        judged = self.judge([row[0].split(" ") for row in rows], progress)
        found = [self.states.spans(one.path) for one in judged]
        gold = [spans_of(row[1].split(" "), "IOB2") for row in rows]
        intended = self.settings.intents
        card = span_card(
            [row[0] for row in rows],
            gold,
            found,
            [row[2] for row in rows] if intended else None,
            [self._intent(one, True)[0] for one in judged] if intended else None,
            known=self.states.kinds,
            intents=self.settings.intent_rule,
            separator=self.settings.separator,
            n_resamples=n_resamples,
        )
        return card, found


def swapped(
    units: Sequence[str], tags: Sequence[str], mentions: Mentions, share: float, chance: random.Random
) -> tuple[list[str], list[str]]:
    """A row with some of its spans put in place of by others of the same label, drawn from all there are."""
    new_units: list[str] = []
    new_tags: list[str] = []
    place = 0
    for start, end, label in _stretches(tags):
        mention: Sequence[str] = units[start:end]
        if chance.random() < share:
            mention = chance.choice(mentions[label])
        new_units += [*units[place:start], *mention]
        inside = tags[start].replace("B", "I", 1)
        new_tags += [*tags[place:start], tags[start], *[inside] * (len(mention) - 1)]
        place = end
    return [*new_units, *units[place:]], [*new_tags, *tags[place:]]


def _stretches(tags: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """(start, end, label) of each span of valid IOB2 tags: what `spans_of` finds, without its checks, for speed."""
    start = -1
    for place, tag in enumerate(tags):
        if start >= 0 and not tag.startswith("I"):
            yield start, place, tags[start][2:]
            start = -1
        if tag.startswith("B"):
            start = place
    if start >= 0:
        yield start, len(tags), tags[start][2:]


def _padded(rows: Sequence[Float[Tensor, "_ K"]]) -> tuple[Float[Tensor, "B T K"], Bool[Tensor, "B T"]]:
    padded = nn.utils.rnn.pad_sequence(list(rows), batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])
    return padded, torch.arange(padded.size(1)) < lengths[:, None]


def _told(text: str, spans: Sequence[Span]) -> str:
    units = text.split(" ")
    return "; ".join(f"{' '.join(units[span.start : span.end])} ({span.label})" for span in spans)
