"""The protocol of extenders: filter and preempt call one after the other, prioritize calls all concurrently.

Ignorable extenders come last. The failure of an ignorable extender is ignored; the failure of another one fails the
attempt to schedule the pod, except for prioritize.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec
import numpy as np

from kubestow.api.pod import Pod
from kubestow.config import configuration
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.nodes import NodeTable
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.extenders.answers import (
    AnswerDecoder,
    BindingResult,
    FilterResult,
    HostPriority,
    PreemptionResult,
)
from kubestow.scheduler.extenders.extender import Answer, Call, CallExtenders, Conversation, Extender, ExtenderError
from kubestow.scheduler.extenders.messages import Messages, NodeList
from kubestow.scheduler.framework.queueing import EXTENDER
from kubestow.scheduler.framework.results import MAX_SCORE, Code, Rejection, Victims
from kubestow.telemetry.logs import get_logger

T = TypeVar("T")

log = get_logger(__name__)

MAX_PRIORITY = 10
"""Scores of extenders are from 0 to this."""
_LARGEST = 1 << 53
"""The maximum that an extender can add to a node's score, or subtract from it."""

_LARGEST_KEPT = 16 << 20
"""Maximum size of a cached answer, in bytes."""

_filter_results = AnswerDecoder(FilterResult)
_priorities = AnswerDecoder(list[HostPriority])
_preemption_results = AnswerDecoder(PreemptionResult)
_binding_results = AnswerDecoder(BindingResult)


class LastAnswers(Generic[T]):
    """The last answer of each extender, and the value derived from it.

    For the same nodes, an extender often returns the same answer, and comparing is a hundred times as fast as decoding.
    """

    def __init__(self) -> None:
        self._last: dict[int, tuple[NodeList, Answer, T]] = {}

    def get(self, call: Call, sent: NodeList, answer: Answer) -> T | None:
        """Return the value derived from the same answer for the same nodes."""
        last = self._last.get(call.extender.number)
        return last[2] if last is not None and last[0] is sent and last[1] == answer else None

    def store(self, call: Call, sent: NodeList, answer: Answer, value: T) -> None:
        if isinstance(answer, bytes) and len(answer) <= _LARGEST_KEPT:
            self._last[call.extender.number] = (sent, answer, value)


class Selection(msgspec.Struct, frozen=True):
    """The result of one extender for the rows that it was sent."""

    extender: Extender
    sent: IntArray
    kept: IntArray
    answer: FilterResult

    def failed(self, table: NodeTable) -> dict[int, Rejection]:
        """Return the rejections by row."""
        reason = f"node(s) removed without a reason by extender {_quoted(self.extender.url)}"
        without_reason = Rejection((reason,), Code.UNRESOLVABLE, EXTENDER)
        failed = dict.fromkeys(np.setdiff1d(self.sent, self.kept).tolist(), without_reason)
        given = {name: Rejection((why,), plugin=EXTENDER) for name, why in self.answer.FailedNodes.items()}
        for name, why in self.answer.FailedAndUnresolvableNodes.items():
            given[name] = Rejection((why,), Code.UNRESOLVABLE, EXTENDER)
        unknown: list[str] = []
        for name, rejection in given.items():
            row = table.row_of.get(name)
            if row is not None and table.live[row]:
                failed[row] = rejection
            else:
                unknown.append(name)
        if unknown:
            message = "Ignoring failed nodes of an extender that do not exist"
            log.info(message, extender=self.extender.url, nodes=len(unknown), first=unknown[0])
        return failed


class Filtered(msgspec.Struct, frozen=True):
    """The rows that extenders left, and the result of each extender."""

    rows: IntArray
    selections: Sequence[Selection]

    def failed(self, table: NodeTable) -> dict[int, Rejection]:
        """Return the rejections by row; of several extenders the last one counts."""
        failed: dict[int, Rejection] = {}
        for selection in self.selections:
            failed.update(selection.failed(table))
        return failed


class ExtenderReport(NamedTuple):
    """A call to an extender: the number of nodes sent, and of those that were kept or scored."""

    url: str
    verb: str
    sent: int
    kept: int
    error: str = ""


class Extenders:
    """All extenders, in the order in which they are called."""

    def __init__(
        self,
        configured: Sequence[configuration.Extender],
        table: NodeTable,
        on_answer: Callable[[ExtenderReport], None] | None = None,
    ) -> None:
        """`on_answer` is called after each answer of an extender."""
        self._on_answer = on_answer
        extenders = [Extender(number, config) for number, config in enumerate(configured)]
        self._extenders = sorted(extenders, key=lambda extender: extender.config.ignorable)
        self._table = table
        self._messages = Messages(table)
        self._selections: LastAnswers[Selection] = LastAnswers()
        self._scores: LastAnswers[IntArray] = LastAnswers()
        self.evaluates_nodes = any(config.filterVerb or config.prioritizeVerb for config in configured)
        """Whether any of them filters or scores nodes."""

    def _interested(self, verb: str, pod: Pod) -> list[tuple[Extender, str]]:
        """Return the extenders to call for a pod, by the configuration field of the verb, each with its verb."""
        verbs = ((extender, getattr(extender.config, verb)) for extender in self._extenders)
        return [(extender, name) for extender, name in verbs if name and extender.is_interested(pod)]

    def _call_about(self, extender: Extender, verb: str, pod: PodInfo, rows: IntArray) -> Call:
        body = self._messages.nodes_body(pod.pod, rows, names_only=extender.config.nodeCacheCapable)
        return Call(extender, verb, body, self._messages.nodes_subject(pod.pod, rows))

    # Filter

    def filter(self, pod: PodInfo, rows: IntArray) -> Conversation[Filtered]:
        """Return the rows that all extenders keep. Raises ExtenderError."""
        selections: list[Selection] = []
        for extender, verb in self._interested("filterVerb", pod.pod):
            if not len(rows):
                break
            call, sent = self._call_about(extender, verb, pod, rows), self._messages.nodes(rows)
            [answer] = yield [call]
            try:
                selection = self._selections.get(call, sent, answer)
                if selection is None:
                    selection = _selected(call, sent, answer, rows)
                    self._selections.store(call, sent, answer, selection)
            except ExtenderError as error:
                self._report(call, len(rows), 0, error)
                _ignore_if_allowed(extender, error, "Skipping extender as it returned error and has ignorable flag set")
            else:
                self._report(call, len(rows), len(selection.kept))
                selections.append(selection)
                rows = selection.kept
        return Filtered(rows, selections)

    def _report(self, call: Call, sent: int, kept: int, error: ExtenderError | None = None) -> None:
        if self._on_answer is not None:
            self._on_answer(
                ExtenderReport(call.extender.url, call.verb, sent, kept, "" if error is None else str(error))
            )

    # Prioritize

    def prioritize(self, pod: PodInfo, rows: IntArray) -> Conversation[IntArray]:
        """Return the sum of the extenders' scores by row."""
        totals: IntArray = np.zeros(len(rows), np.int64)
        called = self._interested("prioritizeVerb", pod.pod)
        calls = [self._call_about(extender, verb, pod, rows) for extender, verb in called]
        if not calls:
            return totals
        sent = self._messages.nodes(rows)
        for call, answer in zip(calls, (yield calls), strict=True):
            try:
                added = self._scores.get(call, sent, answer)
                if added is None:
                    added = _scored(call, sent, answer)
                    self._scores.store(call, sent, answer, added)
                totals += added
                self._report(call, len(rows), len(rows))
            except ExtenderError as error:
                self._report(call, len(rows), 0, error)
                message = "Failed to run extender's priority function. No score given by this extender."
                log.info(message, v=5, error=str(error), pod=pod.key, extender=call.extender.url)
        return totals

    # Preempt

    def supports_preemption(self, pod: PodInfo) -> bool:
        """Return whether any of them must be called before pods are evicted for a pod."""
        return bool(self._interested("preemptVerb", pod.pod))

    def preempt(self, pod: PodInfo, victims: Mapping[str, Victims]) -> Conversation[Mapping[str, Victims]]:
        """Return the candidates for preemption that all extenders keep; raises ExtenderError."""
        for extender, verb in self._interested("preemptVerb", pod.pod):
            if not victims:
                break
            body = self._messages.victims_body(pod.pod, victims, uids_only=extender.config.nodeCacheCapable)
            call = Call(extender, verb, body, self._messages.victims_subject(pod.pod, victims))
            [answer] = yield [call]
            try:
                left = self._victims(call, answer, pod)
                self._report(call, len(victims), len(left))
            except ExtenderError as error:
                self._report(call, len(victims), 0, error)
                _ignore_if_allowed(extender, error, "Skipped extender as it returned error and has ignorable flag set")
            else:
                # In the previous order: of equally good candidates, the first one is taken.
                victims = {node: left[node] for node in (*(node for node in victims if node in left), *left)}
        return victims

    def _victims(self, call: Call, answer: Answer, preemptor: PodInfo) -> dict[str, Victims]:
        left: dict[str, Victims] = {}
        for name, chosen in _preemption_results.decode(call, answer).NodeNameToMetaVictims.items():
            row = self._table.row_of.get(name)
            if row is None or not self._table.live[row]:
                raise ExtenderError(f"extender: {call.extender.url}: nodeinfo not found for node name {_quoted(name)}")
            if chosen.Pods:
                pods = tuple(self._victim(call, row, meta.UID, preemptor) for meta in chosen.Pods)
                left[name] = Victims(pods, chosen.NumPDBViolations)
            elif not call.extender.config.ignorable:
                raise call.extender.error(f"expected at least one victim pod on node {_quoted(name)}")
        return left

    def _victim(self, call: Call, row: int, uid: str, preemptor: PodInfo) -> PodInfo:
        victim = self._table.pods[row].get(uid)
        claim = (
            f"extender: {call.extender.url} claims to preempt pod (UID: &{{{uid}}}) on node: {self._table.names[row]}"
        )
        if victim is None:
            raise ExtenderError(f"{claim}, but the pod is not found on that node")
        if victim.priority >= preemptor.priority:
            raise ExtenderError(f"{claim}, but the pod is not of lower priority")
        return victim

    # Bind

    async def bind(self, pod: Pod, node: str, ask: CallExtenders) -> bool:
        """Bind a pod. Return False if no extender has bound it, so that the plugins must; raises ExtenderError."""
        binding = self._interested("bindVerb", pod)
        if not binding:
            return False
        extender, verb = binding[0]
        call = Call(extender, verb, self._messages.binding_body(pod, node))
        [answer] = await ask([call])
        try:
            result = _binding_results.decode(call, answer)
            if result.Error:
                raise extender.error(result.Error)
        except ExtenderError as error:
            message = "Skipping extender in bind as it returned error and has ignorable flag set"
            _ignore_if_allowed(extender, error, message)
            return False
        return True


def _selected(call: Call, sent: NodeList, answer: Answer, rows: IntArray) -> Selection:
    """Return the result of an extender for the rows that it was sent."""
    extender = call.extender
    result = _filter_results.decode(call, answer)
    if result.Error:
        raise extender.error(result.Error)
    names = result.kept(names_only=extender.config.nodeCacheCapable)
    if names == sent.names:
        return Selection(extender, rows, rows, result)
    try:
        kept = rows[[sent.position_of[name] for name in dict.fromkeys(names)]]
    except KeyError as unknown:
        problem = f"claims a filtered node {_quoted(unknown.args[0])} which is not found in the input node list"
        raise ExtenderError(f"extender {_quoted(extender.url)} {problem}") from None
    return Selection(extender, rows, kept, result)


def _scored(call: Call, sent: NodeList, answer: Answer) -> IntArray:
    """Return the weighted scores of an extender for the nodes that it was sent."""
    priorities = _priorities.decode(call, answer)
    hosts = [priority.Host for priority in priorities]
    factor = min(call.extender.config.weight * (MAX_SCORE // MAX_PRIORITY), _LARGEST)
    most = _LARGEST // factor
    given = np.fromiter([priority.Score for priority in priorities], np.int64, len(hosts))
    added: IntArray = np.clip(given, -most, most) * factor
    if hosts == sent.names:
        # Usually the answer has the order of the question.
        return added
    # The extra entry is for hosts that were not sent.
    scores: IntArray = np.zeros(len(sent.names) + 1, np.int64)
    positions = [sent.position_of.get(host, -1) for host in hosts]
    np.add.at(scores, positions, added)
    if -1 in positions:
        first = hosts[positions.index(-1)]
        message = "Ignoring extender scores of nodes that were not sent"
        log.info(message, extender=call.extender.url, nodes=positions.count(-1), first=first)
    return scores[:-1]


def _ignore_if_allowed(extender: Extender, error: ExtenderError, message: str) -> None:
    if not extender.config.ignorable:
        raise error
    log.info(message, extender=extender.url, err=str(error))


def _quoted(name: str) -> str:
    return f'"{name}"'
