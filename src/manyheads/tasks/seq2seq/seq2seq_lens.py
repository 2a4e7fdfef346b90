"""Seq2seq in the lens: what the model writes for one input, and how `predict` would have prepared the text."""

from typing import TYPE_CHECKING

from manyheads.messages import Message
from manyheads.tasks.task import ModelInput
from manyheads.tasks.written_lens import WriterProbe
from manyheads.text.markup.copyable_spans import restore

if TYPE_CHECKING:
    from manyheads.tasks.seq2seq.seq2seq_task import Seq2Seq

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
