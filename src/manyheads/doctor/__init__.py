"""The doctor's room: what is wrong with this data, this run, this model, and what to do about it.

`examine` is given a recipe, a run's folder or a bundle and yields `Finding`s. Data checks are functions from a
`Survey` (one pass over a set of pairs), training checks from a `Log`, model checks from a bundle. May import recipe
and everything below.
"""

from manyheads.doctor.examine import Kind, examine, kind_of
from manyheads.doctor.findings import Finding, Verdict, has_bad

__all__ = ["Finding", "Kind", "Verdict", "examine", "has_bad", "kind_of"]
