"""Seq2seq in the lens: what the model writes for one input, and how `predict` would have prepared the text."""

from typing import TYPE_CHECKING

from manyheads.language import Bilingual
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
            Bilingual(
                f"`manyheads predict` translates this text in {n_parts} parts. Here the model reads it as one input, "
                "so the answer can differ.",
                f"manyheads predict 会把这段文字分成 {n_parts} 部分翻译；这里模型一次读完全文，译文可能不同。",
            )
        )
    return WriterProbe("seq2seq", task.model, task.tokenizer, model_input, first=0, notes=tuple(notes))


def text_to_read(task: "Seq2Seq", text: str) -> tuple[str, tuple[Bilingual, ...]]:
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
        notes.append(
            Bilingual(
                f"The model reads the text as “{shown}”: it was trained on such text.",
                f"模型实际读到的是“{shown}”：训练文本都是这样写的。",
            )
        )
    if part.is_upper:
        notes.append(
            Bilingual("`manyheads predict` writes this answer in capitals.", "manyheads predict 会把译文转成大写。")
        )
    if part.aside:
        copied = ", ".join(part.aside)
        notes.append(
            Bilingual(
                f"`manyheads predict` appends {copied} to the answer; the model does not read it.",
                f"manyheads predict 会把 {copied} 附在译文末尾；模型不读取这部分。",
            )
        )
    return read, tuple(notes)
