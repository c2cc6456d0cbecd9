"""The array types of the columns, and how they grow."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
IdArray = NDArray[np.int32]
CountArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

Rows = slice | IntArray
"""Some rows of a table: a slice (free to index with) or row numbers."""

AnyArray = TypeVar("AnyArray", bound=NDArray[Any])


def grown(array: AnyArray, size: int, axis: int = -1) -> AnyArray:
    """A copy with room for `size` entries along an axis, zeros at the end."""
    shape = list(array.shape)
    old = shape[axis]
    shape[axis] = size
    bigger: Any = np.zeros(shape, array.dtype)
    where: list[slice] = [slice(None)] * array.ndim
    where[axis] = slice(0, old)
    bigger[tuple(where)] = array
    return bigger  # type: ignore[no-any-return]


def row_numbers(rows: Rows) -> IntArray:
    """The row numbers that `rows` stands for."""
    if isinstance(rows, slice):
        return np.arange(rows.start or 0, rows.stop)
    return rows


def row_count(rows: Rows) -> int:
    """How many rows `rows` stands for."""
    if isinstance(rows, slice):
        return int(rows.stop) - int(rows.start or 0)
    return len(rows)


def are_all_set(mask: BoolArray) -> bool:
    """The same as `mask.all()`, in a tenth of the time."""
    return 0 not in mask.tobytes()
