"""Lens examples of the seq2seq task: source and target, with gold word alignments in the built-in corpus."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from manyheads import corpora
from manyheads.tasks.lens_examples import HELD_OUT, Example, plain_text, tokenize_texts, with_relatives
from manyheads.tasks.seq2seq.translation_parts import masked_tokens
from manyheads.text.markup.copyable_spans import copyable_spans
from manyheads.text.reading.readers import Row
from manyheads.text.tokens.tokenizer import Token, Tokenizer


@dataclass(frozen=True)
class PairExamples:
    """Examples of two texts each, a source and its target."""

    n_texts: int = 2

    def from_row(self, row: Row) -> list[Example]:
        """Return the pair."""
        return [Example((plain_text(row[0]), plain_text(row[1])))]

    def builtin(self, task: Any, languages: Sequence[str], count: int, seed: int) -> list[Example]:
        """Return sentence pairs with their word alignments and relations."""
        source, target = languages
        examples = []
        for sentence in corpora.sentences(HELD_OUT, count, seed):
            links = frozenset(sentence.alignment(source, target))
            texts = tuple(with_relatives(sentence.rendering(language)) for language in languages)
            examples.append(Example(texts, links, links))
        return examples

    def suggestion(self, task: Any, text: str) -> str:
        """Return the source."""
        return text

    def tokenize(self, task: Any, texts: Sequence[str]) -> list[list[Token]]:
        """Return the tokens of each text, source and target in turn, with placeholders for what is copied."""
        tokenizer: Tokenizer = task.tokenizer
        if not tokenizer.placeholders.symbols or len(texts) % self.n_texts:
            return tokenize_texts(task, texts)
        tokens = []
        for source, target in zip(texts[::2], texts[1::2], strict=True):
            assigned = tokenizer.placeholders.assign(source, [target[a:b] for a, b in copyable_spans(target)])
            tokens += [masked_tokens(tokenizer, text, assigned) for text in (source, target)]
        return tokens
