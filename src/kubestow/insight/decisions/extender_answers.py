"""Answers of HTTP extenders, which cannot be called again: recorded while a cycle runs, and replayed later."""

from collections.abc import Sequence
from hashlib import blake2b

from kubestow.scheduler.extenders.extender import Answer, Call, CallExtenders, ExtenderError

_ANSWER_BYTES = 200

Answers = dict[bytes, Answer]
"""By a digest of extender, verb and subject. The body may differ: changes without effect are not in the history."""


class AnswerTape:
    """Records the answers to calls until they are taken."""

    def __init__(self) -> None:
        self.recorded: Answers = {}

    def wrap(self, ask: CallExtenders) -> CallExtenders:
        """Return a function that calls `ask` and records the answers."""

        async def recording(calls: Sequence[Call]) -> Sequence[Answer]:
            answers = await ask(calls)
            self.recorded.update(zip(map(_digest, calls), answers, strict=True))
            return answers

        return recording

    def take(self) -> Answers:
        """Return the answers since the previous call."""
        answers, self.recorded = self.recorded, {}
        return answers


def replay(answers: Answers, calls: Sequence[Call]) -> Sequence[Answer]:
    """Return the recorded answers to these calls; an ExtenderError for a call without one."""
    return [answers.get(_digest(call), ExtenderError(f'no answer of "{call.url}" is recorded')) for call in calls]


def size_of(answers: Answers) -> int:
    """Return the approximate number of bytes of answers."""
    return sum(_ANSWER_BYTES + (len(answer) if isinstance(answer, bytes) else 0) for answer in answers.values())


def _digest(call: Call) -> bytes:
    digest = blake2b(f"{call.extender.number} {call.verb}\n".encode(), digest_size=16)
    for piece in call.subject:
        digest.update(piece)
    return digest.digest()
