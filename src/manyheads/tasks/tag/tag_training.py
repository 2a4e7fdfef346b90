"""Training of tag: batches of words with tags and intents, and their loss."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from manyheads.data import choose_examples, pad, plan_batches
from manyheads.model import symmetric_kl
from manyheads.tasks.tag.crf import States
from manyheads.tasks.tag.settings import TagSettings
from manyheads.tasks.tag.tag_model import Tagger, WordBatch
from manyheads.tasks.task import TrainingData
from manyheads.text.suggestions import shortened
from manyheads.text.tokens.tokenizer import Tokenizer

_MAX_CACHED = 500_000  # words whose token ids are cached

Mentions = Mapping[str, Sequence[tuple[str, ...]]]  # the spans of each label as words, with repetitions


@dataclass(frozen=True)
class TaggedBatch:
    """Words with their tags, as states of the CRF, and the intent of each text."""

    read: WordBatch
    paths: Int[Tensor, "B T"]
    intents: Int[Tensor, " B"]

    @property
    def n_tokens(self) -> int:
        """The number of words, over which the loss is averaged."""
        return int(self.read.is_real.sum())


@dataclass(frozen=True)
class TagTrainingTask:
    """Tagged texts as the training loop sees them."""

    module: Tagger
    tokenizer: Tokenizer
    settings: TagSettings
    states: States
    intents: tuple[str, ...]
    mentions: Mentions
    data: TrainingData
    known: dict[str, list[int]] = field(default_factory=dict)  # cache: word → token ids

    def plan(self, epoch: int) -> list[NDArray[np.int64]]:
        """Batches of rows of similar length, as row indices."""
        data = self.data
        chosen = choose_examples(data.boundaries, data.weights, seed=data.seed, epoch=epoch)
        lengths = data.encoded.lengths[:, :1]
        return plan_batches(lengths, data.batch_tokens, seed=data.seed, epoch=epoch, chosen=chosen)

    def make(self, plan: NDArray[np.int64], seed: int) -> TaggedBatch:
        """Make one batch, with swapped spans and sampled subwords if they are set."""
        rng = random.Random(seed)
        encoded = self.data.encoded
        rows = [self._row(row, rng) for row in plan.tolist()]
        intents = [self.intents.index(encoded.text(2, row)) if self.settings.intents else 0 for row in plan.tolist()]
        encoded.release()
        device = self.module.model.device
        paths = pad([self.states.path_of(tags) for _, tags in rows])
        return TaggedBatch(
            WordBatch.of([tokens for tokens, _ in rows], device),
            torch.from_numpy(paths).to(device),
            torch.tensor(intents, device=device),
        )

    def _row(self, row: int, rng: random.Random) -> tuple[list[list[int]], list[str]]:
        """The token ids of a row's words, and its tags."""
        encoded, swapping = self.data.encoded, self.settings.swapping
        tags = encoded.text(1, row).split(" ")
        if swapping or self.data.sampling:
            words = encoded.text(0, row).split(" ")
            new_words, new_tags = swap_mentions(words, tags, self.mentions, swapping, rng)
            tokens = self._cut(new_words, rng)
            if tokens is not None:
                return tokens, new_tags
        ids, sizes = (encoded.columns[column][row] for column in (0, 1))
        return [part.tolist() for part in np.split(ids, np.cumsum(sizes)[:-1])], tags

    def _cut(self, words: Sequence[str], rng: random.Random) -> list[list[int]] | None:
        """The words' token ids; None if they are more than the model reads."""
        if self.data.sampling:
            cut = self.tokenizer.sample_batch(words, self.data.sampling, rng.getrandbits(32))
        else:
            cut = self._tokens(words)
        return cut if sum(map(len, cut)) < self.module.model.settings.max_length else None

    def _tokens(self, words: Sequence[str]) -> list[list[int]]:
        """The words' token ids, cached: the same words recur in most rows."""
        new = list({word for word in words if word not in self.known})
        if len(self.known) > _MAX_CACHED:
            self.known.clear()
            new = list(set(words))
        self.known.update(zip(new, self.tokenizer.encode_batch(new), strict=True))
        return [self.known[word] for word in words]

    def loss(self, batch: TaggedBatch, step: int) -> Tensor:
        """The tag loss per word, the intent loss per text, and R-Drop's term if it is set."""
        settings, read = self.settings, batch.read
        n_passes = 2 if settings.consistency else 1
        scores, intents = self.module(
            read.ids.repeat(n_passes, 1), read.words.repeat(n_passes, 1), read.word_hashes.repeat(n_passes, 1)
        )
        loss = torch.stack([self._tag_loss(part, batch) for part in scores.chunk(n_passes)]).mean()
        if settings.consistency:
            one, other = scores.chunk(2)
            loss = loss + 0.5 * settings.consistency * symmetric_kl(one[read.is_real], other[read.is_real])
        if intents is not None:
            intent_loss = F.cross_entropy(intents, batch.intents.repeat(n_passes), label_smoothing=settings.smoothing)
            if settings.consistency:
                intent_loss = intent_loss + 0.5 * settings.consistency * symmetric_kl(*intents.chunk(2))
            loss = loss + settings.intent_weight * intent_loss
        return loss

    def _tag_loss(self, scores: Float[Tensor, "B T K"], batch: TaggedBatch) -> Tensor:
        is_real, settings = batch.read.is_real, self.settings
        if settings.decoder == "crf":
            return -self.module.crf.log_probability(scores, batch.paths, is_real).sum() / is_real.sum()
        return F.cross_entropy(scores[is_real], batch.paths[is_real], label_smoothing=settings.smoothing)

    def describe(self, plan: NDArray[np.int64]) -> str:
        """The number of texts in a batch, and the first three."""
        examples = ", ".join(f"“{shortened(self.data.encoded.text(0, row))}”" for row in plan[:3].tolist())
        return f"{len(plan)} texts, {examples}{' …' if len(plan) > 3 else ''}"


def swap_mentions(
    words: Sequence[str], tags: Sequence[str], mentions: Mentions, share: float, rng: random.Random
) -> tuple[list[str], list[str]]:
    """A row with a share of its spans replaced by random spans of the same label."""
    new_words: list[str] = []
    new_tags: list[str] = []
    copied = 0
    for start, end, label in iob2_spans(tags):
        mention: Sequence[str] = words[start:end]
        if rng.random() < share:
            mention = rng.choice(mentions[label])
        new_words += [*words[copied:start], *mention]
        inside = tags[start].replace("B", "I", 1)
        new_tags += [*tags[copied:start], tags[start], *[inside] * (len(mention) - 1)]
        copied = end
    return [*new_words, *words[copied:]], [*new_tags, *tags[copied:]]


def iob2_spans(tags: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """(start, end, label) of each span of valid IOB2 tags: `tags_to_spans` without its checks, for speed."""
    start = -1
    for position, tag in enumerate(tags):
        if start >= 0 and not tag.startswith("I"):
            yield start, position, tags[start][2:]
            start = -1
        if tag.startswith("B"):
            start = position
    if start >= 0:
        yield start, len(tags), tags[start][2:]
