"""The answer cards as one offline page, and as a page of the documentation: made from the stored results."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from markupsafe import Markup, escape

from manyheads.lab.card_computations import fill_computed
from manyheads.lab.cards import CARDS
from manyheads.lab.effect_plots import draw_plot
from manyheads.lab.figures import fill
from manyheads.lab.lab_answers import Answered, shipped_answers
from manyheads.lab.lab_files import AnswerCard, FollowUp, WrongAnswer
from manyheads.lab.lab_texts import LabText, Shown, changed
from manyheads.lab.question_page import render
from manyheads.language import Language
from manyheads.messages import Message


def render_cards(language: Language = "en", answers: Mapping[str, Answered] | None = None) -> str:
    """The page of all cards; it opens in this language and has a switch."""
    answers = shipped_answers() if answers is None else answers
    dates = sorted({str(answered.results.stamp["date"]) for answered in answers.values()})
    summary = Message(
        "{n_cards} questions, answered with formulas and with our own measurements of {dates}. Our numbers come from "
        "stored experiments and computations that you can run; published ones name their source. Each card prints on "
        "one page of A4.",
        n_cards=len(CARDS),
        dates=dates[0] if len(dates) == 1 else f"{dates[0]} – {dates[-1]}",
    )
    return render(
        "cards.html.j2",
        page_title=Message("Transformer answer cards"),
        language=language,
        summary=summary,
        cards=[_view(card, answers) for card in CARDS],
    )


def filled_card(card: AnswerCard, answers: Mapping[str, Answered]) -> AnswerCard:
    """A card with its figures."""
    known = {name: (answered.question, answered.results) for name, answered in answers.items()}

    def put(text: LabText) -> LabText:
        return fill(fill_computed(text), known)

    return replace(
        card,
        answer=put(card.answer),
        computation=tuple(map(put, card.computation)),
        wrong_answers=tuple(WrongAnswer(put(wrong.claim), put(wrong.refutation)) for wrong in card.wrong_answers),
        follow_ups=tuple(FollowUp(put(asked.question), put(asked.answer)) for asked in card.follow_ups),
    )


def used_questions(card: AnswerCard) -> list[str]:
    """The experiments whose results a card quotes or draws."""
    shown = [card.answer, *card.computation]
    for wrong in card.wrong_answers:
        shown += [wrong.claim, wrong.refutation]
    for asked in card.follow_ups:
        shown += [asked.question, asked.answer]
    quoted = [words.split() for text in shown for words in _FIGURE.findall(text["en"])]
    named = [words[1] for words in quoted if words[0] != "computed"]
    return list(dict.fromkeys([*named, *([card.plot[0]] if card.plot else [])]))


def caveats(card: AnswerCard, answers: Mapping[str, Answered]) -> list[Message]:
    """What a reader of a card should know of its measurements: an older protocol, a learning rate at an edge."""
    found = []
    for name in used_questions(card):
        one = answers[name]
        edges = [
            (arm, condition) for arm, condition in one.question.cells() if one.results.edge(arm.name, condition.name)
        ]
        if one.question.tuned_on is not None and one.question.asks != "property" and not one.question.converges:
            date = one.results.stamp["date"]
            found.append(
                Message(
                    "{question}: fixed number of steps (older protocol, {date}), {n_edges} rates at an edge.",
                    question=name,
                    date=date,
                    n_edges=len(edges),
                )
                if edges
                else Message("{question}: fixed number of steps (older protocol, {date}).", question=name, date=date)
            )
        elif edges:
            cells = ", ".join(f"{arm.name} {condition.name}".removesuffix(" -") for arm, condition in edges)
            found.append(
                Message("{question}: learning rate at the edge of its grid: {cells}.", question=name, cells=cells)
            )
    return found


def typeset(text: str) -> Markup:
    """The text as HTML: d_k, W^O and 10000^(2i/d) are typeset; vectors and percentages stay on one line."""
    html = str(escape(text)).replace(" %", "\N{NO-BREAK SPACE}%")
    html = _VECTOR.sub(lambda match: match[0].replace(" ", "\N{NO-BREAK SPACE}"), html)
    html = _SUBSCRIPT.sub(lambda match: f"{match[1]}<sub>{match[2] or match[3]}</sub>", html)
    return Markup(_SUPERSCRIPT.sub(lambda match: f"<sup>{match[1] or match[2]}</sup>", html))


_FIGURE = re.compile(r"\{\{(.*?)\}\}")
_VECTOR = re.compile(r"\[[−\d., ]+\]")
_SUBSCRIPT = re.compile(r"(?<![A-Za-z_])([dnRθ])_(?:\(([^()]+)\)|(k|v|model|ff|source|target|m|n)(?![A-Za-z]))")
_SUPERSCRIPT = re.compile(r"\^(?:\(([^()]+)\)|(\w))")


def _view(card: AnswerCard, answers: Mapping[str, Answered]) -> dict[str, Any]:
    """What the template shows: texts with figures as HTML, and the plot as SVG."""
    filled = filled_card(card, answers)
    plot = None
    if card.plot is not None:
        name, number = card.plot
        answered = answers[name]
        plot = draw_plot(answered.question.plots[number], answered.question, answered.results)
    return {
        "id": card.id,
        "question": _typeset(filled.question),
        "answer": _typeset(filled.answer),
        "formula": [typeset(part) for part in re.split(" {3,}", filled.formula)],  # a line may break between parts
        "plot": plot,
        "computation": [_typeset(line) for line in filled.computation],
        "wrong_answers": [(_typeset(wrong.claim), _typeset(wrong.refutation)) for wrong in filled.wrong_answers],
        "follow_ups": [(_typeset(asked.question), _typeset(asked.answer)) for asked in filled.follow_ups],
        "caveats": caveats(card, answers),
        "command": card.command,
    }


def _typeset(text: Shown) -> LabText:
    return changed(text, typeset)
