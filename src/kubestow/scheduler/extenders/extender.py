"""One extender as configured, a call to it, and conversations: whatever goes on until calls are answered."""

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar, Union

import msgspec

from kubestow.api.pod import Pod
from kubestow.config import configuration
from kubestow.telemetry.secrets import hide_in_text

T = TypeVar("T")


class ExtenderError(Exception):
    """An extender could not be asked, or its answer cannot be used; the words are for the pod's condition."""


class Extender:
    """An extender; `number` is its place in the configuration, `url` is for words: without a password."""

    def __init__(self, number: int, config: configuration.Extender) -> None:
        self.number = number
        self.config = config
        self.url = hide_in_text(config.urlPrefix)
        self._managed = frozenset(resource.name for resource in config.managedResources)

    def error(self, words: str) -> ExtenderError:
        """What it complains of, or what is wrong with its answer, with its name."""
        return ExtenderError(f'{words} (extender "{self.url}")')

    def is_interested(self, pod: Pod) -> bool:
        """Whether a container asks for a resource that the extender manages; one that manages none wants all pods."""
        if not self._managed:
            return True
        return any(
            not self._managed.isdisjoint(amounts)
            for container in (*pod.spec.containers, *pod.spec.initContainers)
            for amounts in (container.resources.requests, container.resources.limits)
        )


class Call(msgspec.Struct, frozen=True):
    """A request; the pieces of its body belong one after the other."""

    extender: Extender
    verb: str
    body: tuple[bytes, ...]
    subject: tuple[bytes, ...] = ()
    """Names the pod and the nodes or victims that the body is about, whichever version of them it has."""

    @property
    def url(self) -> str:
        return f"{self.extender.url.rstrip('/')}/{self.verb}"

    @property
    def prioritizes(self) -> bool:
        return self.verb == self.extender.config.prioritizeVerb

    @property
    def changes_something(self) -> bool:
        """Whether it must not be made twice."""
        return self.verb == self.extender.config.bindVerb


Answer: TypeAlias = bytes | ExtenderError
"""The body of an answer, or why there is none."""
Ask: TypeAlias = Callable[[Sequence[Call]], Awaitable[Sequence[Answer]]]
"""Makes calls side by side; never raises ExtenderError."""
Conversation: TypeAlias = Generator[Sequence[Call], Sequence[Answer], T]
"""Yields calls, is sent their answers, and returns what came of it."""


class Asking(NamedTuple, Generic[T]):
    """A conversation that cannot go on without answers. Until then nothing that it looks at may change."""

    calls: Sequence[Call]
    rest: Conversation[T]

    def answered(self, answers: Sequence[Answer]) -> Union[T, "Asking[T]"]:
        """Go on with the answers to the calls."""
        return carry_on(self.rest, answers)


def carry_on(conversation: Conversation[T], answers: Sequence[Answer] | None = None) -> T | Asking[T]:
    """Carry a conversation on to its end, or to its next question; from the start if there are no answers yet."""
    try:
        return Asking(conversation.send(answers), conversation)  # type: ignore[arg-type]
    except StopIteration as end:
        result: T = end.value
        return result


async def ask_nobody(calls: Sequence[Call]) -> Sequence[Answer]:
    """Where nothing can be asked."""
    return [ExtenderError(f'Post "{call.url}": there is no way to any extender') for call in calls]
