"""Cycles without extenders: they come to their result at once."""

from typing import Any, overload

from kubestow.scheduler.cycle.outcome import Outcome
from kubestow.scheduler.extenders.extender import PausedConversation
from kubestow.scheduler.framework.results import PostFilterResult


@overload
def settled(result: Outcome | PausedConversation[Outcome]) -> Outcome: ...


@overload
def settled(result: PostFilterResult | PausedConversation[PostFilterResult]) -> PostFilterResult: ...


def settled(result: Any) -> Any:
    """Return the result of a cycle, or of a part of it, that had no extenders to ask."""
    assert not isinstance(result, PausedConversation)
    return result
