"""Seq2seq in the lens: pairs to observe heads on, and what the model writes for one input."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manyheads import corpora
from manyheads.messages import Message
from manyheads.tasks.lens_examples import HELD_OUT, Example, plain_text, tokenize_texts, with_relatives
from manyheads.tasks.lens_output import WriterProbe
from manyheads.tasks.model_inputs import ModelInput
from manyheads.tasks.seq2seq.translation_parts import masked_tokens
from manyheads.text.markup.copyable_spans import copyable_spans, restore
from manyheads.text.reading.readers import Row
from manyheads.text.tokens.tokenizer import Token, Tokenizer

if TYPE_CHECKING:
    from manyheads.tasks.seq2seq.seq2seq_task import Seq2Seq


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


_MAX_SHOWN = 120  # characters of a text in a note


def probe_writing(task: "Seq2Seq", model_input: ModelInput) -> WriterProbe:
    """Return the probe of the answer; a text that `predict` would divide is one input here, and a note says so."""
    n_parts = len(task.part_reader.parts([model_input.text])[0]) if task.is_translation else 1
    notes = []
    if n_parts > 1:
        notes.append(
            Message(
                "`manyheads predict` translates this text in {n_parts} parts. Here the model reads it as one "
                "input, so the answer can differ.",
                n_parts=n_parts,
            )
        )
    return WriterProbe("seq2seq", task.model, task.tokenizer, model_input, first=0, notes=tuple(notes))


def text_to_read(task: "Seq2Seq", text: str) -> tuple[str, tuple[Message, ...]]:
    """Return a text as `predict` has the model read it, undivided, and notes about what `predict` does besides."""
    if not task.is_translation:
        return text, ()
    part = task.part_reader.whole(text)
    read = restore(part.source, part.assigned).text
    if not read:  # nothing but what `predict` copies
        return text, ()
    notes = []
    if read != text.strip():
        shown = read if len(read) <= _MAX_SHOWN else f"{read[:_MAX_SHOWN]}…"
        notes.append(Message("The model reads the text as “{shown}”: it was trained on such text.", shown=shown))
    if part.is_upper:
        notes.append(Message("`manyheads predict` writes this answer in capitals."))
    if part.aside:
        copied = ", ".join(part.aside)
        notes.append(
            Message("`manyheads predict` appends {copied} to the answer; the model does not read it.", copied=copied)
        )
    return read, tuple(notes)
