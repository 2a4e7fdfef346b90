"""`TASKS`: the tasks by the kind that a recipe names.

A task is a package; one line here registers it. Its parts for `init`, `doctor`, `quickstart`, scorecards and
the lens are class attributes of the task, so that no other package lists tasks by name.
"""

from manyheads.tasks.classify import Classify
from manyheads.tasks.embed import Embed
from manyheads.tasks.language import Language
from manyheads.tasks.masked import Masked
from manyheads.tasks.seq2seq import Seq2Seq
from manyheads.tasks.tag import Tag
from manyheads.tasks.task import Task

TASKS: dict[str, type[Task]] = {
    "seq2seq": Seq2Seq,
    "classify": Classify,
    "tag": Tag,
    "language": Language,
    "masked": Masked,
    "embed": Embed,
}
DEFAULT_KIND = "seq2seq"  # of a recipe that does not set task.kind
