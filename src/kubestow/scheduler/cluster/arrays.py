"""The array types of the columns, and how they grow."""

from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

_Scalar = TypeVar("_Scalar", bound=np.generic)
NDArray = np.ndarray[tuple[Any, ...], np.dtype[_Scalar]]
"""What it is in numpy.typing, which takes time to load."""
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


# numpy's own reductions take a microsecond before they begin.


def are_all_set(mask: BoolArray | ByteArray) -> bool:
    """The same as `mask.all()`."""
    return 0 not in mask.tobytes()


def is_any_set(mask: BoolArray) -> bool:
    """The same as `mask.any()`."""
    return 1 in mask.tobytes()


def are_all_zero(array: NDArray[Any]) -> bool:
    """The same as `not array.any()`."""
    return array.tobytes() == bytes(array.nbytes)


def largest(array: NDArray[Any]) -> Any:
    """The same as `array.max()`, as a plain number; there must be one."""
    return array.item(array.argmax())


@lru_cache(maxsize=8)
def first_rows(count: int) -> IntArray:
    """The numbers of so many rows: the same array for whoever asks, so it cannot be changed."""
    rows = np.arange(count)
    rows.flags.writeable = False
    return rows
