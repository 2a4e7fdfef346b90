"""Arrays in double precision, as walks hold them."""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]


def doubles(tensor: Tensor) -> Floats:
    """Return a tensor as an array of doubles."""
    return np.ascontiguousarray(tensor.detach().numpy(), dtype=np.float64)
