"""The questions of the lab: one TOML file each, whose `order` is that of the list; see `lab_files`."""

from pathlib import Path

from manyheads.lab.lab_files import read_question
from manyheads.lab.question import Question

_read = map(read_question, Path(__file__).parent.glob("*.toml"))
QUESTIONS: dict[str, Question] = {
    question.id: question for question in sorted(_read, key=lambda question: (question.order, question.id))
}
