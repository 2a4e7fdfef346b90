"""The built-in corpus: a grammar of our own that says the same thing in English, 中文 and Deutsch.

An abstract sentence is drawn from a seed (`sample*`), said in three languages (`english`, `chinese`, `german`), and
comes with its gold word alignment and gold relations (`corpus`). The lexicon is a set of tables (`nouns`, `verbs`,
`adjectives`, `adverbials`).
"""

from manyheads.text.grammar.corpus import LANGUAGES, SPLITS, Relation, Rendering, Sentence, pairs, sentences
from manyheads.text.grammar.rows import rows

__all__ = ["LANGUAGES", "SPLITS", "Relation", "Rendering", "Sentence", "pairs", "rows", "sentences"]
