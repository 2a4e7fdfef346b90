"""The built-in corpus: a grammar of our own that says the same thing in English, 中文 and Deutsch.

An abstract sentence is drawn from a seed (`sample*`), said in three languages (`english`, `chinese`, `german`), and
comes with its gold word alignment and gold relations (`corpus`). The lexicon is a set of tables (`nouns`, `verbs`,
`adjectives`, `adverbials`).

From the same grammar come the corpora of the other tasks (`rows`): opinions with their stance, sentences with their
entities and intents, short stories and their summaries; and `consistent`, which checks any story.
"""

from manyheads.corpora.builtin import LANGUAGES, SPLITS, Relation, Rendering, Sentence, pairs, sentences
from manyheads.corpora.story_parser import consistent
from manyheads.corpora.task_rows import CORPORA, rows

__all__ = [
    "CORPORA",
    "LANGUAGES",
    "SPLITS",
    "Relation",
    "Rendering",
    "Sentence",
    "consistent",
    "pairs",
    "rows",
    "sentences",
]
