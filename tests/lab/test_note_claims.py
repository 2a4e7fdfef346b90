"""The claims of circulating notes: counted right on the card, complete, in both languages, and shown in the docs."""

import runpy
from pathlib import Path

import pytest
import torch

from manyheads.lab.cards import CARDS
from manyheads.lab.note_claims import VERDICTS, Note, read_notes
from manyheads.model.norms import NORMS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("note", read_notes(), ids=lambda note: note.title["en"])
def test_every_claim_has_a_verdict_and_a_card(note: Note) -> None:
    cards = {card.id for card in CARDS}
    for claim in note.claims:
        assert claim.verdict in VERDICTS
        assert claim.card in cards, claim
        assert claim.text["en"] != claim.text["zh"]
        assert "|" not in claim.text["en"] + claim.text["zh"]  # a cell of a table
    assert sum(note.count().values()) == len(note.claims)


def test_the_card_has_the_counts() -> None:
    (card,) = [card for card in CARDS if card.id == "notes"]
    english, chinese = [], []
    for number, note in enumerate(read_notes(), start=1):
        confirmed, refuted, undecided = note.count().values()
        english.append(f"note {number}: {confirmed} confirmed, {refuted} refuted, {undecided} undecided")
        chinese.append(f"笔记 {number}：证实 {confirmed}，否定 {refuted}，未定 {undecided}")
    assert [line["en"] for line in card.computation] == english
    assert [line["zh"] for line in card.computation] == chinese


@pytest.mark.parametrize(("language", "folder"), [("en", "concepts"), ("zh", "zh/concepts")])
def test_the_documentation_has_the_tables(language: str, folder: str) -> None:
    page = runpy.run_path(str(DOCS / "draw_notes.py"))["page"]
    assert (DOCS / folder / "notes.md").read_text("utf-8") == page(language)


def test_layer_norm_drops_magnitudes_as_the_card_says() -> None:
    norm = NORMS["layer"](4, 1e-5)
    x = torch.tensor([[[1.0, 2.0, 3.0, 6.0]]])
    is_real = torch.ones(1, 1, dtype=torch.bool)
    with torch.no_grad():
        normalized, scaled = norm(x, is_real), norm(10 * x, is_real)
    assert torch.allclose(scaled, normalized, atol=1e-4)
    assert float(normalized.norm()) == pytest.approx(2.0, abs=1e-4)
