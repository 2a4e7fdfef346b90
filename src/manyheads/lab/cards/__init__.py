"""The answer cards: one TOML file for each topic, whose `order` is that of the page; see `lab_files`."""

from pathlib import Path

from manyheads.lab.lab_files import AnswerCard, read_cards

_topics = sorted(map(read_cards, Path(__file__).parent.glob("*.toml")), key=lambda topic: topic[0])
CARDS: tuple[AnswerCard, ...] = tuple(card for _, cards in _topics for card in cards)
