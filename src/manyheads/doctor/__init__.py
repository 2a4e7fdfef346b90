"""The doctor's room: what is wrong with this data, this run, this model, and what to do about it.

`examine` is given a recipe, a run's folder or a bundle and yields `Finding`s. Data checks are functions from a
`CorpusStats` (one pass over a set of pairs), training checks from a `RunLog`, model checks from a bundle. May import recipe
and everything below.
"""

from manyheads.doctor.diagnosis import Kind, detect_kind, examine
from manyheads.doctor.findings import Finding, Verdict, has_bad

__all__ = ["Finding", "Kind", "Verdict", "detect_kind", "examine", "has_bad"]
