"""The conversation with extenders: filter one after the other, prioritize side by side, preempt one after the other.

Extenders that may be ignored come last. Where one of those fails it is passed over; where another one does, so does
the attempt to schedule the pod, except that nobody's scores are needed.
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
from kubestow.scheduler.extenders.extender import Answer, Call, Conversation, Extender, ExtenderError
from kubestow.scheduler.extenders.messages import Messages, NodeList
from kubestow.scheduler.framework.queueing import EXTENDER
from kubestow.scheduler.framework.results import MAX_SCORE, Code, Rejection, Victims
from kubestow.telemetry.logs import get_logger

T = TypeVar("T")

log = get_logger(__name__)

MAX_PRIORITY = 10
"""Extenders score from 0 to this."""
_LARGEST = 1 << 53
"""No extender can add more to a node's score, nor take more from it, whatever it answers."""

_LARGEST_KEPT = 16 << 20
"""Bytes of an answer that is kept."""

_filter_results = AnswerDecoder(FilterResult)
_priorities = AnswerDecoder(list[HostPriority])
_preemption_results = AnswerDecoder(PreemptionResult)
_binding_results = AnswerDecoder(BindingResult)


class LastAnswers(Generic[T]):
    """The last answer of each extender, and what was made of it.

    Asked about the same nodes, an extender often gives the same answer: comparing it is a hundred times as fast as
    reading it.
    """

    def __init__(self) -> None:
        self._last: dict[int, tuple[NodeList, Answer, T]] = {}

    def get(self, call: Call, sent: NodeList, answer: Answer) -> T | None:
        """What was made of the same answer about the same nodes."""
        last = self._last.get(call.extender.number)
        return last[2] if last is not None and last[0] is sent and last[1] == answer else None

    def keep(self, call: Call, sent: NodeList, answer: Answer, made: T) -> None:
        if isinstance(answer, bytes) and len(answer) <= _LARGEST_KEPT:
            self._last[call.extender.number] = (sent, answer, made)


class Selection(msgspec.Struct, frozen=True):
    """What one extender did with the rows that it was asked about."""

    extender: Extender
    asked: IntArray
    kept: IntArray
    answer: FilterResult

    def failed(self, table: NodeTable) -> dict[int, Rejection]:
        """Why rows will not do."""
        words = f"node(s) left out without a reason by extender {_quoted(self.extender.url)}"
        silent = Rejection((words,), Code.UNRESOLVABLE, EXTENDER)
        failed = dict.fromkeys(np.setdiff1d(self.asked, self.kept).tolist(), silent)
        said = {name: Rejection((why,), plugin=EXTENDER) for name, why in self.answer.FailedNodes.items()}
        for name, why in self.answer.FailedAndUnresolvableNodes.items():
            said[name] = Rejection((why,), Code.UNRESOLVABLE, EXTENDER)
        unknown: list[str] = []
        for name, rejection in said.items():
            row = table.row_of.get(name)
            if row is not None and table.live[row]:
                failed[row] = rejection
            else:
                unknown.append(name)
        if unknown:
            words = "Extender failed nodes that do not exist. They do not count."
            log.info(words, extender=self.extender.url, nodes=len(unknown), first=unknown[0])
        return failed


class Filtered(msgspec.Struct, frozen=True):
    """What extenders left of some rows, and how they came to it."""

    rows: IntArray
    selections: Sequence[Selection]

    def failed(self, table: NodeTable) -> dict[int, Rejection]:
        """Why rows will not do; of several extenders the last word counts."""
        failed: dict[int, Rejection] = {}
        for selection in self.selections:
            failed.update(selection.failed(table))
        return failed


class Asked(NamedTuple):
    """One extender that was asked, and about how many nodes; how many it left, or scored."""

    url: str
    verb: str
    sent: int
    kept: int
    error: str = ""


class Extenders:
    """All extenders, in the order in which they are asked."""

    def __init__(
        self,
        configured: Sequence[configuration.Extender],
        table: NodeTable,
        asked: Callable[[Asked], None] | None = None,
    ) -> None:
        """`asked` is called for each extender that has answered."""
        self._on_asked = asked
        made = [Extender(number, config) for number, config in enumerate(configured)]
        self._extenders = sorted(made, key=lambda extender: extender.config.ignorable)
        self._table = table
        self._messages = Messages(table)
        self._selections: LastAnswers[Selection] = LastAnswers()
        self._scores: LastAnswers[IntArray] = LastAnswers()
        self.judge_nodes = any(config.filterVerb or config.prioritizeVerb for config in configured)
        """Whether any of them says which nodes will do, or how good they are."""

    def _asked(self, verb: str, pod: Pod) -> list[tuple[Extender, str]]:
        """Who is asked about a pod for what, in the words of the configuration; with the verb of each."""
        verbs = ((extender, getattr(extender.config, verb)) for extender in self._extenders)
        return [(extender, name) for extender, name in verbs if name and extender.is_interested(pod)]

    def _call_about(self, extender: Extender, verb: str, pod: PodInfo, rows: IntArray) -> Call:
        body = self._messages.about_nodes(pod.pod, rows, names_only=extender.config.nodeCacheCapable)
        return Call(extender, verb, body, self._messages.nodes_subject(pod.pod, rows))

    # Filter

    def filter(self, pod: PodInfo, rows: IntArray) -> Conversation[Filtered]:
        """Raises ExtenderError."""
        selections: list[Selection] = []
        for extender, verb in self._asked("filterVerb", pod.pod):
            if not len(rows):
                break
            call, sent = self._call_about(extender, verb, pod, rows), self._messages.nodes(rows)
            [answer] = yield [call]
            try:
                selection = self._selections.get(call, sent, answer)
                if selection is None:
                    selection = _selected(call, sent, answer, rows)
                    self._selections.keep(call, sent, answer, selection)
            except ExtenderError as error:
                self._tell(call, len(rows), 0, error)
                _pass_over(extender, error, "Skipping extender as it returned error and has ignorable flag set")
            else:
                self._tell(call, len(rows), len(selection.kept))
                selections.append(selection)
                rows = selection.kept
        return Filtered(rows, selections)

    def _tell(self, call: Call, sent: int, kept: int, error: ExtenderError | None = None) -> None:
        if self._on_asked is not None:
            self._on_asked(Asked(call.extender.url, call.verb, sent, kept, "" if error is None else str(error)))

    # Prioritize

    def prioritize(self, pod: PodInfo, rows: IntArray) -> Conversation[IntArray]:
        """What all of them add to the scores of rows."""
        totals: IntArray = np.zeros(len(rows), np.int64)
        asked = self._asked("prioritizeVerb", pod.pod)
        calls = [self._call_about(extender, verb, pod, rows) for extender, verb in asked]
        if not calls:
            return totals
        sent = self._messages.nodes(rows)
        for call, answer in zip(calls, (yield calls), strict=True):
            try:
                added = self._scores.get(call, sent, answer)
                if added is None:
                    added = _scored(call, sent, answer)
                    self._scores.keep(call, sent, answer, added)
                totals += added
                self._tell(call, len(rows), len(rows))
            except ExtenderError as error:
                self._tell(call, len(rows), 0, error)
                words = "Failed to run extender's priority function. No score given by this extender."
                log.info(words, v=5, error=str(error), pod=pod.key, extender=call.extender.url)
        return totals

    # Preempt

    def judge_preemption(self, pod: PodInfo) -> bool:
        """Whether any of them wants to be asked before pods are evicted for a pod."""
        return bool(self._asked("preemptVerb", pod.pod))

    def preempt(self, pod: PodInfo, victims: Mapping[str, Victims]) -> Conversation[Mapping[str, Victims]]:
        """What they leave of the candidates for preemption; raises ExtenderError."""
        for extender, verb in self._asked("preemptVerb", pod.pod):
            if not victims:
                break
            body = self._messages.about_victims(pod.pod, victims, uids_only=extender.config.nodeCacheCapable)
            call = Call(extender, verb, body, self._messages.victims_subject(pod.pod, victims))
            [answer] = yield [call]
            try:
                left = self._victims(call, answer, pod)
                self._tell(call, len(victims), len(left))
            except ExtenderError as error:
                self._tell(call, len(victims), 0, error)
                _pass_over(extender, error, "Skipped extender as it returned error and has ignorable flag set")
            else:
                # In the order they had: of candidates that are equally good, the first is taken.
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

    def binding(self, pod: Pod, node: str) -> Call | None:
        """The call that binds a pod, if an extender is to."""
        for extender, verb in self._asked("bindVerb", pod):
            return Call(extender, verb, self._messages.about_binding(pod, node))
        return None

    @staticmethod
    def has_bound(call: Call, answer: Answer) -> bool:
        """False if it has not, and somebody else is to; raises ExtenderError."""
        try:
            result = _binding_results.decode(call, answer)
            if result.Error:
                raise call.extender.error(result.Error)
        except ExtenderError as error:
            words = "Skipping extender in bind as it returned error and has ignorable flag set"
            _pass_over(call.extender, error, words)
            return False
        return True


def _selected(call: Call, sent: NodeList, answer: Answer, rows: IntArray) -> Selection:
    """What an extender made of the rows that it was sent."""
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
        words = f"claims a filtered node {_quoted(unknown.args[0])} which is not found in the input node list"
        raise ExtenderError(f"extender {_quoted(extender.url)} {words}") from None
    return Selection(extender, rows, kept, result)


def _scored(call: Call, sent: NodeList, answer: Answer) -> IntArray:
    """What an extender adds to the scores of the nodes that it was sent."""
    priorities = _priorities.decode(call, answer)
    hosts = [priority.Host for priority in priorities]
    factor = min(call.extender.config.weight * (MAX_SCORE // MAX_PRIORITY), _LARGEST)
    most = _LARGEST // factor
    given = np.fromiter([priority.Score for priority in priorities], np.int64, len(hosts))
    added: IntArray = np.clip(given, -most, most) * factor
    if hosts == sent.names:
        # Most often the answer is in the order of the question.
        return added
    # One on top for the hosts that nobody asked about.
    scores: IntArray = np.zeros(len(sent.names) + 1, np.int64)
    positions = [sent.position_of.get(host, -1) for host in hosts]
    np.add.at(scores, positions, added)
    if -1 in positions:
        words = "Extender scored nodes that it was not asked about. These scores do not count."
        stranger = hosts[positions.index(-1)]
        log.info(words, extender=call.extender.url, nodes=positions.count(-1), first=stranger)
    return scores[:-1]


def _pass_over(extender: Extender, error: ExtenderError, words: str) -> None:
    if not extender.config.ignorable:
        raise error
    log.info(words, extender=extender.url, err=str(error))


def _quoted(name: str) -> str:
    return f'"{name}"'
