"""The answer cards as one offline page, and as a page of the documentation: made from the stored results."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from markupsafe import Markup, escape

from manyheads.lab.card import Card, FollowUp, WrongAnswer
from manyheads.lab.card_computations import fill_computed
from manyheads.lab.cards import CARDS
from manyheads.lab.effect_plots import draw_plot
from manyheads.lab.figures import fill
from manyheads.lab.lab_answers import Answered, shipped_answers
from manyheads.lab.question_page import render
from manyheads.language import Bilingual, Language


def render_cards(language: Language = "en", answers: Mapping[str, Answered] | None = None) -> str:
    """The page of all cards; it opens in this language and has a switch."""
    answers = shipped_answers() if answers is None else answers
    dates = sorted({str(one.results.stamp["date"]) for one in answers.values()})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} – {dates[-1]}"
    summary = Bilingual(
        f"{len(CARDS)} questions, answered with formulas and with our own measurements of {span}. Our numbers come "
        "from stored experiments and computations that you can run; published ones name their source. Each card prints "
        "on one page of A4.",
        f"{len(CARDS)} 个问题，用公式和我们自己的测量（{span}）作答。我们的数字都来自可以重新运行的实验或计算，"
        "引用的数字注明出处。每张卡片打印一页 A4。",
    )
    return render(
        "cards.html.j2",
        page_title=Bilingual("Transformer answer cards", "Transformer 面试答题卡"),
        language=language,
        summary=summary,
        cards=[_view(card, answers) for card in CARDS],
    )


def filled_card(card: Card, answers: Mapping[str, Answered]) -> Card:
    """A card with its figures."""
    known = {name: (one.question, one.results) for name, one in answers.items()}

    def put(text: Bilingual) -> Bilingual:
        return fill(fill_computed(text), known)

    return replace(
        card,
        answer=put(card.answer),
        computation=tuple(map(put, card.computation)),
        wrong_answers=tuple(WrongAnswer(put(one.claim), put(one.refutation)) for one in card.wrong_answers),
        follow_ups=tuple(FollowUp(put(one.question), put(one.answer)) for one in card.follow_ups),
    )


def typeset(text: str) -> Markup:
    """The text as HTML: d_k, W^O and 10000^(2i/d) are typeset; vectors and percentages stay on one line."""
    html = str(escape(text)).replace(" %", "\N{NO-BREAK SPACE}%")
    html = _VECTOR.sub(lambda match: match[0].replace(" ", "\N{NO-BREAK SPACE}"), html)
    html = _SUBSCRIPT.sub(lambda match: f"{match[1]}<sub>{match[2] or match[3]}</sub>", html)
    return Markup(_SUPERSCRIPT.sub(lambda match: f"<sup>{match[1] or match[2]}</sup>", html))


_VECTOR = re.compile(r"\[[−\d., ]+\]")
_SUBSCRIPT = re.compile(r"(?<![A-Za-z_])([dnRθ])_(?:\(([^()]+)\)|(k|v|model|ff|source|target|m|n)(?![A-Za-z]))")
_SUPERSCRIPT = re.compile(r"\^(?:\(([^()]+)\)|(\w))")


def _view(card: Card, answers: Mapping[str, Answered]) -> dict[str, Any]:
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
        "wrong_answers": [(_typeset(one.claim), _typeset(one.refutation)) for one in filled.wrong_answers],
        "follow_ups": [(_typeset(one.question), _typeset(one.answer)) for one in filled.follow_ups],
        "command": card.command,
    }


def _typeset(text: Bilingual) -> Bilingual:
    return Bilingual(typeset(text.en), typeset(text.zh))
