"""Diagnosis of a recipe and its data, a run or a bundle, with advice.

`examine` takes a recipe, a run folder or a bundle and yields `Finding`s. Data checks are functions of `CorpusStats`
(one pass over a set of rows), training checks of a `RunLog`, model checks of a bundle. What only a task knows is
checked by its own part, `Task.doctor`. May import run and below.
"""

from manyheads.doctor.diagnosis import Kind, detect_kind, examine
from manyheads.tasks.findings import Finding, Verdict, has_bad

__all__ = ["Finding", "Kind", "Verdict", "detect_kind", "examine", "has_bad"]
