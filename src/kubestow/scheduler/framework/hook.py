"""A method of a plugin, ready to be called at its extension point."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from kubestow.scheduler.framework.contract import CONTRACT
from kubestow.scheduler.framework.guard import Guard


class Hook:
    """What a caller calls. Methods that go with the one of an extension point hang on it as hooks of their own."""

    checks_trusted: ClassVar[bool] = False
    """Whether the answers of the scheduler's own plugins are checked, too. Tests set it before profiles are built."""

    def __init__(
        self, plugin: Any, method: str, function: Callable[..., Any] | None = None, guard: Guard | None = None
    ) -> None:
        """`function` stands in for the method; a guard protects the scheduler from a plugin that is not its own."""
        contract = CONTRACT[method]
        self.plugin = plugin
        self.name: str = plugin.name
        self.point = contract.point
        self.method = method
        called = getattr(plugin, method) if function is None else function
        self.function: Callable[..., Any] = (
            called if guard is None else guard.around(called, self.name, method, columns=function is None)
        )
        self.is_trusted = guard is None
        self.check = contract.check if guard is not None or Hook.checks_trusted else None
        self.must_answer = contract.must_answer
        self.is_timed = contract.is_timed
        self.costly_rows: bool = getattr(plugin, "costly_rows", False)
        """Whether it is to be asked only about rows that still matter."""
        self.needs_state: bool = getattr(plugin, "needs_state", False)
        """Whether it has nothing to do for a pod for which its PreFilter left no state."""
        self.evaluations = 0
        """How often it was called; for filters and scores, counted per node."""

        def beside(*methods: str) -> Hook | None:
            names = [name for name in methods if name in contract.beside and hasattr(plugin, name)]
            return Hook(plugin, names[0], None, guard) if names else None

        by_row = guard is None or guard.asks_row_by_row
        self.passing_rows = beside("passing_rows") if by_row else None
        self.row = beside("row_rejection", "row_score") if by_row else None
        self.join = beside("join_states", "join_score_states")
        self.with_changes = beside("with_changes")
        self.counted_rows = beside("counted_rows")
        self.copies = beside("copies_rows")
        self.for_group = beside("pod_group_post_filter")
        self.normalize = beside("normalize")
        self.unreserve = beside("unreserve")
        self.pre_bind_needed = beside("pre_bind_needed")

    def concerns(self, states: Mapping[str, Any]) -> bool:
        """Whether it may have something to do for a pod with these states."""
        return not self.needs_state or self.name in states

    @property
    def all_evaluations(self) -> int:
        """How often the plugin was asked at this point, one way or the other."""
        return self.evaluations + sum(hook.evaluations for hook in (self.passing_rows, self.row) if hook is not None)

    def reset(self) -> None:
        """Begin to count again."""
        for hook in (self, self.passing_rows, self.row):
            if hook is not None:
                hook.evaluations = 0
