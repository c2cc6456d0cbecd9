"""A method of a plugin, ready to be called at its extension point."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from kubestow.scheduler.framework.contract import CONTRACT
from kubestow.scheduler.framework.guard import Guard


class Hook:
    """A plugin method that the Caller calls. Companions, as `unreserve` of `reserve`, are its attributes."""

    checks_trusted: ClassVar[bool] = False
    """Whether the results of built-in plugins are checked, too. Tests set it before profiles are built."""

    def __init__(
        self, plugin: Any, method: str, function: Callable[..., Any] | None = None, guard: Guard | None = None
    ) -> None:
        """`function` replaces the method; `guard` protects the scheduler from a plugin that is not built in."""
        contract = CONTRACT[method]
        self.plugin = plugin
        self.name: str = plugin.name
        self.point = contract.point
        self.method = method
        called = getattr(plugin, method) if function is None else function
        self.function: Callable[..., Any] = (
            called if guard is None else guard.wrap(called, self.name, method, columns=function is None)
        )
        self.is_trusted = guard is None
        self.check = contract.check if guard is not None or Hook.checks_trusted else None
        self.must_return = contract.must_return
        self.is_timed = contract.is_timed
        self.costly_rows: bool = getattr(plugin, "costly_rows", False)
        """Whether it is called only for rows that no other filter has rejected."""
        self.skips_resizes: bool = getattr(plugin, "skips_resizes", False)
        """Whether it filters no pod that has a node and waits there for the capacity of a resize."""
        self.needs_state: bool = getattr(plugin, "needs_state", False)
        """Whether it is not called for a pod without a state from PreFilter."""
        self.scores_by_filter_state = not hasattr(plugin, "pre_score")
        """Whether Score gets the state from PreFilter; otherwise that from PreScore, even if that is disabled."""
        self.is_reported = False
        """Whether the plugin was reported as slow."""
        self.evaluations = 0
        """Number of calls; for filters and scores, number of evaluated rows."""

        def companion(*methods: str) -> Hook | None:
            names = [name for name in methods if name in contract.companions and hasattr(plugin, name)]
            return Hook(plugin, names[0], None, guard) if names else None

        by_row = guard is None or guard.allows_single_rows
        self.passing_rows = companion("passing_rows") if by_row else None
        self.row = companion("row_rejection", "row_score") if by_row else None
        self.join = companion("join_states", "join_score_states")
        self.with_changes = companion("with_changes")
        self.counted_rows = companion("counted_rows")
        self.copies = companion("copies_rows")
        self.feasible = companion("placement_feasible")
        self.normalize = companion("normalize")
        self.unreserve = companion("unreserve")
        self.pre_bind_needed = companion("pre_bind_needed")

    def applies_to(self, states: Mapping[str, Any]) -> bool:
        """Return whether it must be called for a pod with these states."""
        return not self.needs_state or self.name in states

    @property
    def all_evaluations(self) -> int:
        """Number of evaluations by all methods of the plugin at this point."""
        return self.evaluations + sum(hook.evaluations for hook in (self.passing_rows, self.row) if hook is not None)

    def reset(self) -> None:
        """Set the counts to 0."""
        for hook in (self, self.passing_rows, self.row):
            if hook is not None:
                hook.evaluations = 0
