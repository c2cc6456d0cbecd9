"""Runs the PostFilter plugins in order, until one nominates a node or finds that preemption cannot help."""

from typing import TYPE_CHECKING

from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.extenders.extender import Conversation, ExtenderError
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.results import Candidates, Code, PluginError, PostFilterResult

if TYPE_CHECKING:
    from kubestow.scheduler.extenders.protocol import Extenders

_REJECTED = (Code.UNSCHEDULABLE, Code.PENDING)


def run_post_filter(
    profile: Profile, evaluation: Evaluation, extenders: "Extenders | None"
) -> Conversation[PostFilterResult]:
    """Run PostFilter; the messages of plugins that could not help are joined. A failure of a plugin is a result."""
    start = profile.caller.started()
    result = yield from _run(profile, evaluation, extenders)
    profile.caller.record_point("PostFilter", result.code, start)
    return result


def _run(profile: Profile, evaluation: Evaluation, extenders: "Extenders | None") -> Conversation[PostFilterResult]:
    messages: list[str] = []
    nominated: str | None = None
    for hook in profile.post_filter:
        try:
            answer: PostFilterResult | Candidates = profile.caller.call(hook, evaluation.pod, evaluation)
            if isinstance(answer, Candidates):
                result = yield from _choose_candidate(hook.name, answer, evaluation, extenders)
            else:
                result = answer
        except PluginError as error:
            return PostFilterResult(Code.ERROR, str(error))
        if result.code in (Code.SUCCESS, Code.UNRESOLVABLE):
            return result._replace(plugin=hook.name)
        if result.code not in _REJECTED:
            return PostFilterResult(Code.ERROR, result.message)
        if result.nominated_node is not None:
            nominated = result.nominated_node
        if result.message:
            messages.append(result.message)
    return PostFilterResult(Code.UNSCHEDULABLE, ", ".join(messages), nominated)


def _choose_candidate(
    plugin: str, candidates: Candidates, evaluation: Evaluation, extenders: "Extenders | None"
) -> Conversation[PostFilterResult]:
    """Let the extenders filter the candidates, and the plugin choose among the remaining ones."""
    victims = candidates.victims
    if extenders is not None:
        try:
            victims = yield from extenders.preempt(evaluation.pod, victims)
        except ExtenderError as error:
            return PostFilterResult(Code.ERROR, f"preemption: {error}")
    try:
        return candidates.choose(victims)
    except Exception as error:
        raise PluginError(plugin, "PostFilter", error) from error
