"""PostFilter: the plugins that try to make room are asked in turn, until one has, or finds that nothing can."""

from kubestow.cycle.evaluation import Evaluation
from kubestow.framework.profile import Profile
from kubestow.framework.results import Code, PluginError, PostFilterResult

_REJECTED = (Code.UNSCHEDULABLE, Code.PENDING)


def run_post_filter(profile: Profile, evaluation: Evaluation) -> PostFilterResult:
    """Ask the plugins; what those who could not help had to say is joined. A plugin that fails ends it."""
    start = profile.caller.started()
    result = _run(profile, evaluation)
    profile.caller.finished("PostFilter", result.code, start)
    return result


def _run(profile: Profile, evaluation: Evaluation) -> PostFilterResult:
    messages: list[str] = []
    nominated: str | None = None
    for hook in profile.post_filter:
        try:
            result: PostFilterResult = profile.caller.call(hook, evaluation.pod, evaluation)
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
