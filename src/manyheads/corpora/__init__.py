"""The built-in corpora: sentences of a grammar, rendered in English, Chinese and German.

The samplers (`*_sampler`) draw an abstract syntax tree from a seed; `english`, `chinese` and `german` render it.
`builtin` adds gold word alignments and relations. The lexicon is a set of tables (`nouns`, `verbs`, `adjectives`,
`adverbials`).

The same grammar yields the corpora of the other tasks (`task_rows`): opinions with a stance, sentences with entities
and intents, short stories with summaries. `story_faults` checks the consistency of any story.
"""

from manyheads.corpora.builtin import LANGUAGES, SPLITS, Relation, Rendering, Sentence, pairs, sentences
from manyheads.corpora.story_parser import story_faults
from manyheads.corpora.task_rows import CORPORA, rows

__all__ = [
    "CORPORA",
    "LANGUAGES",
    "SPLITS",
    "Relation",
    "Rendering",
    "Sentence",
    "pairs",
    "rows",
    "sentences",
    "story_faults",
]
