"""The tagger: its settings, its module, and its training: batches of words with tags and intents, and their loss."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from manyheads.data import choose_examples, pad, plan_batches
from manyheads.metrics import IntentRule
from manyheads.model import Transformer, symmetric_kl
from manyheads.settings import Range, Rate, raise_faults, type_faults
from manyheads.tasks.model_inputs import Pool, Pooling
from manyheads.tasks.tag.crf import CRF, States
from manyheads.tasks.task import TaskSettings, TrainingData
from manyheads.text.suggestions import shortened
from manyheads.text.tokens.tokenizer import BOS, PAD, Tokenizer

_MAX_BUCKETS = 1 << 18
_MAX_NUMBERS = 1 << 21  # numbers of evidence: with many labels there are fewer buckets
_MIN_COUNT = 2  # n-grams seen less often are ignored


@dataclass(frozen=True, kw_only=True)
class TagSettings(TaskSettings):
    """How tags are decoded and trained, and whether each text also has an intent."""

    kind: Literal["tag"] = "tag"  # predict the labeled spans of a text
    # How tags encode spans. IO and words are labels without letters; with words, each word is a span of its own.
    scheme: Literal["auto", "IOB1", "IOB2", "BIOES", "BMES", "IO", "words"] = "auto"
    decoder: Literal["constrained", "crf"] = "crf"  # crf: learned transitions; constrained: only valid ones
    word_vector: Literal["mean", "first"] = "mean"  # the vector of a word: the mean of its tokens, or its first token
    head_dropout: Rate = 0.2  # dropout before the output layer
    # Also fit a linear CRF of words, their parts and their neighbors. Its score is shown beside the model's, and the
    # answer is a mixture of both, weighted on the validation rows.
    baseline: bool = True
    # Also score n-grams of up to this many words beside the Transformer; 0: none.
    ngrams: Annotated[int, Range(0, 5)] = 0
    ngram_dropout: Rate = 0.3  # dropout of n-grams
    # Share of training spans replaced by another span of the same label.
    swapping: Annotated[float, Range(0, 1)] = 0.0
    smoothing: Rate = 0.0  # ε of label smoothing; with "crf" only for intents
    # R-Drop's α: weight of the agreement of two passes with different dropout, such as 1; 0: one pass.
    consistency: Annotated[float, Range(0)] = 0.0

    intents: bool = False  # rows have an intent besides their tags
    pooling: Pooling = "mean-max"  # how token vectors become the vector of the text, for the intent
    intent_weight: Annotated[float, Range(0)] = 0.3  # weight of the intent loss beside the tag loss
    intent_rule: IntentRule = "strict"  # strict: "a#b" must be predicted as a whole; else "a" is correct, too
    separator: str = "#"  # between the parts of an intent such as "a#b"

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "task."))

    @property
    def loss_terms(self) -> dict[str, float]:
        """What the loss contains beside the cross-entropy, or the CRF's log-likelihood, of the tags."""
        is_smoothed = self.intents or self.decoder == "constrained"
        smoothing, intents = self.smoothing if is_smoothed else 0.0, self.intent_weight if self.intents else 0.0
        terms = {"label smoothing": smoothing, "R-Drop": self.consistency, "intent loss": intents}
        return {name: weight for name, weight in terms.items() if weight}


def _count_buckets(n_outputs: int) -> int:
    return min(_MAX_BUCKETS, 1 << (max(_MAX_NUMBERS // n_outputs, 1024).bit_length() - 1))


def _mix(numbers: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
    """Hash each number: multiply by an odd constant and mix the high bits into the low ones."""
    mixed = numbers * 0x5851F42D4C957F2D
    return mixed ^ ((mixed >> 29) & 0x7FFFFFFF)


class NgramTagger(nn.Module):
    """Learned evidence for a word's tag: of every n-gram of up to `max_n` words around it, by its position in it."""

    evidence: Tensor
    is_common: Tensor  # 1 for n-grams that occur at least `_MIN_COUNT` times, else 0

    def __init__(self, n_states: int, max_n: int, dropout: float) -> None:
        super().__init__()
        self.max_n = max_n
        self.dropout = dropout
        self.n_buckets = _count_buckets(n_states)
        self.evidence = nn.Parameter(torch.zeros(self.n_buckets, n_states))
        self.register_buffer("is_common", torch.zeros(self.n_buckets))

    def forward(self, word_hashes: Int[Tensor, "B T"]) -> Float[Tensor, "B T K"]:
        """The scores of each word's tags; `word_hashes` are hashes of the words, 0 for padding."""
        buckets = self.buckets(word_hashes)
        weights = self.is_common[buckets]
        if self.training and self.dropout:
            weights = weights * (torch.rand_like(weights) >= self.dropout) / (1.0 - self.dropout)
        scores = nn.functional.embedding_bag(
            buckets.flatten(0, 1), self.evidence, per_sample_weights=weights.flatten(0, 1), mode="sum"
        )
        return scores.unflatten(0, buckets.shape[:2])

    def buckets(self, word_hashes: Int[Tensor, "B T"]) -> Int[Tensor, "B T N"]:
        """The buckets of the n-grams around each word."""
        n_words, buckets = word_hashes.size(1), []
        padded = nn.functional.pad(word_hashes, (self.max_n - 1, self.max_n - 1))
        mixed = torch.zeros_like(padded)
        for length in range(1, self.max_n + 1):
            n_starts = padded.size(1) - length + 1
            mixed = _mix(mixed[:, :n_starts] + padded[:, length - 1 :] + length)
            for offset in range(length):  # of the word in the n-gram
                start = self.max_n - 1 - offset
                buckets.append(_mix(mixed[:, start : start + n_words] + offset) % self.n_buckets)
        return torch.stack(buckets, dim=-1)

    @torch.no_grad()
    def count(self, batches: Iterable[Int[Tensor, "B T"]]) -> None:
        """Count the n-grams; those that occur once are ignored, since they would only be memorized."""
        counts = torch.zeros_like(self.is_common)
        for word_hashes in batches:
            buckets = self.buckets(word_hashes)[word_hashes != 0].flatten()
            counts.index_add_(0, buckets, torch.ones_like(buckets, dtype=counts.dtype))
        self.is_common.copy_(counts >= _MIN_COUNT)


_HASH_MODULUS = (1 << 61) - 1  # a prime that fits in 64 bits


class Tagger(nn.Module):
    """A Transformer over tokens; a word is the mean of its tokens, and a linear layer scores its tags."""

    def __init__(self, model: Transformer, states: States, n_intents: int, settings: TagSettings) -> None:
        super().__init__()
        self.model = model
        self.reads_first = settings.word_vector == "first"
        self.dropout = nn.Dropout(settings.head_dropout)
        self.output = nn.Linear(model.settings.width, len(states))
        self.crf = CRF(states, learned=settings.decoder == "crf")
        self.ngrams = NgramTagger(len(states), settings.ngrams, settings.ngram_dropout) if settings.ngrams else None
        if settings.intents:
            self.pool = Pool(settings.pooling, model.settings.width)
            self.intent = nn.Linear(self.pool.width, n_intents)

    def forward(
        self, ids: Int[Tensor, "B S"], words: Int[Tensor, "B S"], word_hashes: Int[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B T K"], Float[Tensor, "B C"] | None]:
        """The scores of each word's tags and of each text's intents.

        `words` is the index of the word that each token belongs to; tokens of no word (BOS, padding) have the number of
        words. `word_hashes` are those of `WordBatch`.
        """
        is_real: Bool[Tensor, "B S"] = ids != PAD
        n_words = word_hashes.size(1)
        hidden = self.model.encode(ids, is_real)
        read = words.masked_fill(words == words.roll(1, dims=1), n_words) if self.reads_first else words
        pooled = self.dropout(_mean_by(hidden, read, n_words + 1)[:, :n_words])
        intents = self.intent(self.dropout(self.pool(hidden, is_real))) if hasattr(self, "intent") else None
        scores = self.output(pooled)
        return scores if self.ngrams is None else scores + self.ngrams(word_hashes), intents


def _mean_by(x: Float[Tensor, "B S W"], owners: Int[Tensor, "B S"], n_owners: int) -> Float[Tensor, "B O W"]:
    """The mean of each owner's vectors; zeros for an owner without any."""
    flat = (owners + n_owners * torch.arange(len(owners), device=owners.device)[:, None]).flatten()
    size = n_owners * len(owners)
    sums = x.new_zeros(size, x.size(-1)).index_add(0, flat, x.flatten(0, 1))
    counts = x.new_zeros(size).index_add(0, flat, x.new_ones(len(flat)))
    return (sums / counts.clamp(min=1.0)[:, None]).unflatten(0, (len(owners), n_owners))


@dataclass(frozen=True)
class WordBatch:
    """Texts as ids, the word index of each id, the hash of each word, and which words are not padding."""

    ids: Int[Tensor, "B S"]
    words: Int[Tensor, "B S"]
    word_hashes: Int[Tensor, "B T"]
    is_real: Bool[Tensor, "B T"]

    @classmethod
    def of(
        cls, texts: Sequence[Sequence[Sequence[int]]], device: torch.device, *, closes: int | None = None
    ) -> "WordBatch":
        """Make a batch of texts, given as the token ids of each word; BOS is prepended, and `closes` appended."""
        n_words = [len(text) for text in texts]
        longest = max(n_words)
        ids = pad([[number for word in text for number in word] for text in texts], before=BOS, after=closes)
        words = np.full_like(ids, longest)
        for row, text in zip(words, texts, strict=True):
            owners = np.repeat(np.arange(len(text)), [len(word) for word in text])
            row[1 : 1 + len(owners)] = owners
        word_hashes = pad([list(map(_hash_word, text)) for text in texts])
        is_real = np.arange(longest) < np.array(n_words)[:, None]
        return cls(*(torch.from_numpy(array).to(device) for array in (ids, words, word_hashes, is_real)))


def _hash_word(tokens: Sequence[int]) -> int:
    """A hash of a word's tokens; 0 is reserved for padding."""
    value = 1
    for token in tokens:
        value = (value * 1_000_003 + token) % _HASH_MODULUS
    return value


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
            WordBatch.of([tokens for tokens, _ in rows], device, closes=self.tokenizer.closes),
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
        self.known.update(zip(new, self.tokenizer.encode_words(new), strict=True))
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
            first, second = scores.chunk(2)
            loss = loss + 0.5 * settings.consistency * symmetric_kl(first[read.is_real], second[read.is_real])
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
