"""What circulating study notes claim, in our words, and whether it stands up: counted and shown as tables.

The claims are in note_claims.toml. The answer card `notes` and a page of the documentation show the counts.
"""

import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from manyheads.lab.lab_texts import LabText
from manyheads.messages import Message, _

VERDICTS = {
    "confirmed": Message("confirmed"),
    "refuted": Message("refuted"),
    "undecided": Message("undecided"),
}


@dataclass(frozen=True)
class Claim:
    """One claim, its verdict, and the id of the answer card that says why."""

    text: LabText
    verdict: str
    card: str


@dataclass(frozen=True)
class Note:
    """The claims of one note; its title names the topic."""

    title: LabText
    claims: tuple[Claim, ...]

    def count(self) -> dict[str, int]:
        """Return the number of claims with each verdict."""
        counts = Counter(claim.verdict for claim in self.claims)
        return {verdict: counts[verdict] for verdict in VERDICTS}


@cache
def read_notes() -> tuple[Note, ...]:
    """Read the notes in order."""
    table = tomllib.loads(Path(__file__).with_name("note_claims.toml").read_text("utf-8"))
    return tuple(
        Note(
            LabText({"en": note["en"], "zh": note["zh"]}),
            tuple(
                Claim(LabText({"en": claim["en"], "zh": claim["zh"]}), claim["verdict"], claim["card"])
                for claim in note["claims"]
            ),
        )
        for note in table["notes"]
    )


def claims_markdown() -> str:
    """Return the counts of all notes and one table for each, as Markdown in the language in use."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    notes, names = read_notes(), [str(name) for name in VERDICTS.values()]
    yield _row("", _("note"), *names)
    yield "| --- | --- | --- | --- | --- |"
    for number, note in enumerate(notes, start=1):
        yield _row(number, note.title, *note.count().values())
    total = Counter[str]()
    for note in notes:
        total.update(note.count())
    yield _row("", _("all"), *(total[verdict] for verdict in VERDICTS))
    for number, note in enumerate(notes, start=1):
        yield f"\n## {number} · {note.title}\n"
        yield _row(_("claim"), _("verdict"), _("card"))
        yield "| --- | --- | --- |"
        for claim in note.claims:
            yield _row(claim.text, VERDICTS[claim.verdict], claim.card)


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"
