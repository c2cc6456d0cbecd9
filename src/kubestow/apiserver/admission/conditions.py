"""Evaluation of policy expressions on a write. Variables are evaluated on first use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubestow.api.cel import CelError, EvaluationError
from kubestow.api.cel.values import DefaultingMap
from kubestow.apiserver.admission.scopes import Scope, compiled
from kubestow.apiserver.admission.writes import Object, Write
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.kinds.subresources import SUBRESOURCES


@dataclass(slots=True)
class Context:
    """A write as the expressions of one policy see it."""

    write: Write
    resource: Resource
    """The resource in whose version objects are shown."""
    scope: Scope
    namespace: Object | None
    params: Object | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    """The expressions of variables, by name."""
    _values: list[Any] = field(default_factory=list)

    def evaluate(self, source: str) -> Any:
        """Return the value of an expression; raises CelError."""
        if not self._values:
            write = self.write
            self._values = [
                write.in_version_of(write.new, self.resource),
                write.in_version_of(write.old, self.resource),
            ]
            self._values += [self.namespace, *([self.params] if self.scope.params else [])]
            self._values += [request_of(write, self.resource), DefaultingMap({}, self._variable)]
        return compiled(source, self.scope).evaluate(*self._values)

    def _variable(self, name: str) -> Any:
        try:
            value = self.evaluate(self.sources[name])
        except EvaluationError as error:
            raise EvaluationError(f'composited variable "{name}" fails to evaluate: {error}') from None
        self._values[-1][name] = value
        return value

    def applies(self, conditions: Sequence[Object]) -> bool:
        """Return whether all conditions hold; raises EvaluationError if one fails to evaluate and none is false."""
        failure: CelError | None = None
        for one in conditions:
            try:
                if self.evaluate(one["expression"]) is not True:
                    return False
            except CelError as error:
                failure = failure or error
        if failure is not None:
            raise EvaluationError(f"match condition failed to evaluate: {failure}")
        return True


def _kind(resource: Resource, sub: str) -> Object:
    """Return the kind that is written: that of the resource, unless the subresource has its own."""
    own = (resource.group, resource.version, resource.kind)
    group, version, kind = (SUBRESOURCES[sub].gvk if sub else None) or own
    return {"group": group, "version": version, "kind": kind}


def request_of(write: Write, resource: Resource) -> Object:
    """Return the request of a write, as policies and webhooks see it."""
    own = write.resource
    return {
        "kind": _kind(resource, write.sub),
        "resource": {"group": resource.group, "version": resource.version, "resource": resource.plural},
        "subResource": write.sub,
        "requestKind": _kind(own, write.sub),
        "requestResource": {"group": own.group, "version": own.version, "resource": own.plural},
        "requestSubResource": write.sub,
        "name": write.metadata.get("name", ""),
        "namespace": write.namespace,
        "operation": write.operation,
        "userInfo": {"uid": "", "extra": {}, **write.intent.user.info()},
        "dryRun": write.intent.dry_run,
        "options": {},
    }
