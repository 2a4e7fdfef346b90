"""Every error this project raises at a user, in one tree. It imports nothing of ours.

An error is one line that says where, what was given, what is allowed and what to do next. The command line
prints that line and exits with a code other than zero; Python callers may catch `ManyheadsError` for all of them.
"""


class ManyheadsError(Exception):
    """The root: catch this to catch everything that is the input's fault rather than ours."""


class RecipeError(ManyheadsError):
    """Settings that are unknown, of the wrong type, or do not fit one another; all faults at once."""

    def __init__(self, *faults: str) -> None:
        self.faults = faults
        super().__init__(faults[0] if len(faults) == 1 else "\n".join(f"  - {fault}" for fault in faults))


class DataError(ManyheadsError):
    """Text that cannot be read as asked: missing, empty, badly encoded, of unequal length, too long."""


class BundleError(ManyheadsError):
    """A bundle that is missing, damaged, incomplete or of another format."""


class CheckpointError(ManyheadsError):
    """A checkpoint that is damaged, or that belongs to another recipe."""


class TrainingError(ManyheadsError):
    """A training run that cannot go on: the loss is not a number, another run is using the folder."""


class LensError(ManyheadsError):
    """A question that this model cannot be asked: a head it does not have, a share of heads that is none."""


class EngineError(ManyheadsError):
    """An engine that cannot run this model on this machine: not installed, not built, a setting it does not know."""
