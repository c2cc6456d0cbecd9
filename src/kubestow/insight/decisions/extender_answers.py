"""Answers of HTTP extenders, which cannot be asked again: noted while a cycle runs, and replayed later."""

from collections.abc import Sequence
from hashlib import blake2b

from kubestow.scheduler.extenders.extender import Answer, Ask, Call, ExtenderError

_ANSWER_BYTES = 200

Answers = dict[bytes, Answer]
"""By a digest of extender, verb and subject. The body may differ: changes that do not matter are not in the history."""


class AnswerTape:
    """Notes the answers to calls, until they are taken."""

    def __init__(self) -> None:
        self.noted: Answers = {}

    def around(self, ask: Ask) -> Ask:
        """Return a function that asks in the same way and notes the answers."""

        async def asked(calls: Sequence[Call]) -> Sequence[Answer]:
            answers = await ask(calls)
            self.noted.update(zip(map(_digest, calls), answers, strict=True))
            return answers

        return asked

    def take(self) -> Answers:
        """Return the answers since the last call."""
        answers, self.noted = self.noted, {}
        return answers


def replay(answers: Answers, calls: Sequence[Call]) -> Sequence[Answer]:
    """Return what was answered to these calls."""
    return [answers.get(_digest(call), ExtenderError(f'the answer of "{call.url}" is not known')) for call in calls]


def size_of(answers: Answers) -> int:
    """Return about how many bytes answers take."""
    return sum(_ANSWER_BYTES + (len(answer) if isinstance(answer, bytes) else 0) for answer in answers.values())


def _digest(call: Call) -> bytes:
    digest = blake2b(f"{call.extender.number} {call.verb}\n".encode(), digest_size=16)
    for piece in call.subject:
        digest.update(piece)
    return digest.digest()
