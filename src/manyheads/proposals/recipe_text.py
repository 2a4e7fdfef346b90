"""A proposal as the text of a commented recipe."""

import textwrap
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from manyheads.settings import toml_value
from manyheads.tasks.proposal import Choice, Proposal
from manyheads.text.reading.files import format_suffix
from manyheads.text.reading.tagged_readers import TAGGED_FILES

_LINE = 118
_MANY_FILES = 3


def recipe_text(proposal: Proposal, heading: Iterable[str]) -> str:
    """A recipe to read: a heading, then each setting with its reason."""
    lines = [f"# {line}".rstrip() for line in heading]
    sections: dict[str, list[Choice]] = {"": []}  # keys without a section come first
    for choice in proposal.choices:
        sections.setdefault(choice.name.rpartition(".")[0], []).append(choice)
    for section, choices in sections.items():
        lines += ["", f"[{section}]"] if section else [""] if choices else []
        settings = [f"{choice.name.rpartition('.')[2]} = {toml_value(choice.value)}" for choice in choices]
        width = max((len(setting) for setting in settings if len(setting) <= 40), default=0)
        for choice, setting in zip(choices, settings, strict=True):
            line = f"{setting:<{width}}  # {choice.reason}"
            if not choice.reason:
                lines.append(setting)
            elif len(line) <= _LINE:
                lines.append(line)
            else:
                lines += [*textwrap.wrap(choice.reason, _LINE, initial_indent="# ", subsequent_indent="# "), setting]
    return "\n".join(lines) + "\n"


def with_files_from(proposal: Proposal, folder: Path) -> Proposal:
    """The proposal as written into a folder: files inside it have relative names, others absolute ones."""
    names = ("data.train", "data.valid", "data.test")
    return replace(
        proposal,
        choices=tuple(
            replace(choice, value=[_relative_to(folder, file) for file in _by_folder(choice.value)])
            if choice.name in names and isinstance(choice.value, list)
            else replace(choice, value=_relative_to(folder, str(choice.value)))
            if choice.name == "init_from"
            else choice
            for choice in proposal.choices
        ),
    )


def _by_folder(files: list[str]) -> list[str]:
    """Many files as their folder, if a recipe can name them by it: all texts of a folder, or seq.in, seq.out, label."""
    folder = Path(files[0]).parent
    if any(Path(file).parent != folder for file in files) or len(files) < _MANY_FILES:
        return files
    if tuple(Path(file).name for file in files) == TAGGED_FILES:
        return [str(folder)]
    texts = [str(path) for path in folder.glob("**/*") if format_suffix(path) == ".txt"]
    return [str(folder)] if sorted(texts) == sorted(files) else files


def _relative_to(folder: Path, file: str) -> str:
    path, root = Path(file).resolve(), folder.resolve()
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
