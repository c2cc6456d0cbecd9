"""What the last answer of each extender came to: asked about the same nodes, it often says the same again, to the byte.

Comparing is a hundred times as fast as reading.
"""

from typing import Generic, TypeVar

from kubestow.extenders.extender import Answer, Call
from kubestow.extenders.messages import NodeList

LARGEST_KEPT = 16 << 20
"""Bytes of an answer."""

T = TypeVar("T")


class LastAnswers(Generic[T]):
    """The last answer of each extender, and what was made of it."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[NodeList, Answer, T]] = {}

    def get(self, call: Call, sent: NodeList, answer: Answer) -> T | None:
        """What was made of the same answer about the same nodes."""
        last = self._last.get(call.extender.number)
        return last[2] if last is not None and last[0] is sent and last[1] == answer else None

    def keep(self, call: Call, sent: NodeList, answer: Answer, made: T) -> None:
        if isinstance(answer, bytes) and len(answer) <= LARGEST_KEPT:
            self._last[call.extender.number] = (sent, answer, made)
