"""All errors that manyheads raises for faulty input, in one tree.

A message is one line: where, what was given, what is allowed, what to do. The command line prints it and exits with a
non-zero code; Python callers can catch `ManyheadsError` for all of them.
"""


class ManyheadsError(Exception):
    """Base class of all errors caused by input rather than by a bug."""


class RecipeError(ManyheadsError):
    """Settings that are unknown, of the wrong type, or inconsistent; `faults` lists all of them."""

    def __init__(self, *faults: str) -> None:
        self.faults = faults
        super().__init__(faults[0] if len(faults) == 1 else "\n".join(f"  - {fault}" for fault in faults))


class DataError(ManyheadsError):
    """Text that cannot be read or used: missing, empty, badly encoded, of unequal length, too long."""


class BundleError(ManyheadsError):
    """A bundle that is missing, damaged, incomplete or of another format."""


class CheckpointError(ManyheadsError):
    """A checkpoint that is damaged, or that belongs to another run."""


class TrainingError(ManyheadsError):
    """A run that cannot continue: the loss is not finite, the disk is full, another process uses the folder."""


class LostProcessError(TrainingError):
    """A process of a run that died, hangs or is unreachable; the run can be resumed from its last checkpoint."""


class LensError(ManyheadsError):
    """An analysis that this model does not support: a head that does not exist, a fraction outside its range."""


class EngineError(ManyheadsError):
    """An engine that cannot run this model on this machine: not installed, not built, an unsupported setting."""


class LabError(ManyheadsError):
    """An experiment that cannot run or cannot be read: an unknown question, a damaged results file."""


class LearnError(ManyheadsError):
    """An exercise that does not exist, or a learner's file that cannot be checked: its syntax, its names."""


class ServeError(ManyheadsError):
    """A service that cannot start: a port in use, a file of keys that cannot be read, a missing package."""


class JobError(ManyheadsError):
    """A bulk job that cannot go on: its folder belongs to another job, its workers die, a package is missing."""
