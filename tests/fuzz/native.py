"""The native engine against the torch engine, with random settings, weights and sources."""

from collections import Counter
from random import Random

from decode.test_native_fuzz import check_case


def native(rng: Random) -> None:
    check_case(rng.randrange(1 << 32), Counter())


TARGETS = {"native": native}
