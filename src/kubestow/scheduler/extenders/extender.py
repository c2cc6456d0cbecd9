"""A configured extender, a call to it, and conversations: generators that yield calls and are sent the answers."""

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar, Union

import msgspec

from kubestow.api.pod import Pod
from kubestow.config import configuration
from kubestow.telemetry.secrets import redact_text

T = TypeVar("T")


class ExtenderError(Exception):
    """A call to an extender failed, or its answer is invalid; the message is for the pod's condition."""


class Extender:
    """An extender; `number` is its index in the configuration, `url` is for messages: without a password."""

    def __init__(self, number: int, config: configuration.Extender) -> None:
        self.number = number
        self.config = config
        self.url = redact_text(config.urlPrefix)
        self._managed = frozenset(resource.name for resource in config.managedResources)

    def error(self, message: str) -> ExtenderError:
        """Return an error with the name of the extender."""
        return ExtenderError(f'{message} (extender "{self.url}")')

    def is_interested(self, pod: Pod) -> bool:
        """Return whether a container requests a resource that the extender manages; True if it manages none."""
        if not self._managed:
            return True
        return any(
            not self._managed.isdisjoint(amounts)
            for container in (*pod.spec.containers, *pod.spec.initContainers)
            for amounts in (container.resources.requests, container.resources.limits)
        )


class Call(msgspec.Struct, frozen=True):
    """A request; the body is the concatenation of its parts."""

    extender: Extender
    verb: str
    body: tuple[bytes, ...]
    subject: tuple[bytes, ...] = ()
    """Identifies the pod and the nodes or victims of the body, without their versions."""

    @property
    def url(self) -> str:
        return f"{self.extender.url.rstrip('/')}/{self.verb}"

    @property
    def prioritizes(self) -> bool:
        return self.verb == self.extender.config.prioritizeVerb

    @property
    def binds(self) -> bool:
        """Whether the call binds the pod, and must not be repeated."""
        return self.verb == self.extender.config.bindVerb


Answer: TypeAlias = bytes | ExtenderError
"""The body of an answer, or the error."""
CallExtenders: TypeAlias = Callable[[Sequence[Call]], Awaitable[Sequence[Answer]]]
"""Makes calls concurrently; never raises ExtenderError."""
Conversation: TypeAlias = Generator[Sequence[Call], Sequence[Answer], T]
"""Yields calls, is sent their answers, and returns a result."""


class PausedConversation(NamedTuple, Generic[T]):
    """A conversation that needs answers to continue. Until then, nothing that it reads may change."""

    calls: Sequence[Call]
    rest: Conversation[T]

    def resume(self, answers: Sequence[Answer]) -> Union[T, "PausedConversation[T]"]:
        """Continue with the answers to the calls."""
        return run_until_calls(self.rest, answers)


def run_until_calls(
    conversation: Conversation[T], answers: Sequence[Answer] | None = None
) -> T | PausedConversation[T]:
    """Run a conversation up to its end, or to its next calls; from the start if there are no answers yet."""
    try:
        return PausedConversation(conversation.send(answers), conversation)  # type: ignore[arg-type]
    except StopIteration as end:
        result: T = end.value
        return result


async def refuse_calls(calls: Sequence[Call]) -> Sequence[Answer]:
    """Return an error for each call, where no client exists."""
    return [ExtenderError(f'Post "{call.url}": extenders cannot be called from here') for call in calls]
