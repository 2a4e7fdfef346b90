"""An answer card: an interview question with a short answer, a formula, evidence, wrong answers and follow-ups."""

from dataclasses import dataclass

from manyheads.lab.lab_texts import LabText


@dataclass(frozen=True)
class WrongAnswer:
    """An answer that circulates, and the number that refutes it; both may quote figures."""

    claim: LabText
    refutation: LabText


@dataclass(frozen=True)
class FollowUp:
    """What an interviewer asks next, with a one-sentence answer."""

    question: LabText
    answer: LabText


@dataclass(frozen=True, kw_only=True)
class Card:
    """One interview question. Texts may quote figures as {{…}}: of stored results, see `figures`, or computed ones.

    For {{computed GROUP NAME}} see `card_computations`.
    """

    id: str
    question: LabText
    answer: LabText  # two to four sentences
    formula: str = ""  # plain text with Unicode, such as softmax(QKᵀ/√d_k)V
    # Evidence: a plot of an experiment, as (question id, number of its plot), or lines of a computation.
    plot: tuple[str, int] | None = None
    computation: tuple[LabText, ...] = ()
    command: str = ""  # what to run to see it
    wrong_answers: tuple[WrongAnswer, ...] = ()
    follow_ups: tuple[FollowUp, ...] = ()
