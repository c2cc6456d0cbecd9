"""The array types of the columns, and helpers for them."""

from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

_Scalar = TypeVar("_Scalar", bound=np.generic)
NDArray = np.ndarray[tuple[Any, ...], np.dtype[_Scalar]]
"""The definition in numpy.typing, which takes time to import."""
IntArray = NDArray[np.int64]
IdArray = NDArray[np.int32]
CountArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]
ByteArray = NDArray[np.uint8]
FloatArray = NDArray[np.float64]

Rows = slice | IntArray
"""Some rows of a table: a slice (free to index with) or row numbers."""

AnyArray = TypeVar("AnyArray", bound=NDArray[Any])


def grown(array: AnyArray, size: int, axis: int = -1) -> AnyArray:
    """Return a copy with `size` entries along an axis; new entries are zero."""
    shape = list(array.shape)
    old = shape[axis]
    shape[axis] = size
    bigger: Any = np.zeros(shape, array.dtype)
    where: list[slice] = [slice(None)] * array.ndim
    where[axis] = slice(0, old)
    bigger[tuple(where)] = array
    return bigger  # type: ignore[no-any-return]


def row_numbers(rows: Rows) -> IntArray:
    """Return the row numbers that `rows` stands for."""
    if isinstance(rows, slice):
        return np.arange(rows.start or 0, rows.stop)
    return rows


def row_count(rows: Rows) -> int:
    """Return the number of rows that `rows` stands for."""
    if isinstance(rows, slice):
        return int(rows.stop) - int(rows.start or 0)
    return len(rows)


# numpy's own reductions have an overhead of a microsecond.


def are_all_set(mask: BoolArray | ByteArray) -> bool:
    """Return `mask.all()`."""
    return 0 not in mask.tobytes()


def is_any_set(mask: BoolArray) -> bool:
    """Return `mask.any()`."""
    return 1 in mask.tobytes()


def are_all_zero(array: NDArray[Any]) -> bool:
    """Return `not array.any()`."""
    return array.tobytes() == bytes(array.nbytes)


def largest(array: NDArray[Any]) -> Any:
    """Return `array.max()` as a Python number; the array must not be empty."""
    return array.item(array.argmax())


@lru_cache(maxsize=8)
def first_rows(count: int) -> IntArray:
    """Return the numbers 0 to count - 1; the array is shared and read-only."""
    rows = np.arange(count)
    rows.flags.writeable = False
    return rows
