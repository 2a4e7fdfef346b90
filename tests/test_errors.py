import pickle

import pytest

from manyheads import errors
from manyheads.errors import ManyheadsError, RecipeError


def test_all_errors_have_one_base_class() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(kinds) > 1
    assert all(issubclass(kind, ManyheadsError) for kind in kinds)


def test_message_is_the_only_fault_or_a_list() -> None:
    assert str(RecipeError("a = 1 is wrong.")) == "a = 1 is wrong."
    assert str(RecipeError("a is wrong.", "b too.")) == "  - a is wrong.\n  - b too."


@pytest.mark.parametrize("faults", [("one.",), ("one.", "two.")])
def test_faults_survive_pickling(faults: tuple[str, ...]) -> None:
    again = pickle.loads(pickle.dumps(RecipeError(*faults)))  # noqa: S301
    assert again.faults == faults
    assert str(again) == str(RecipeError(*faults))
