"""Kinds that the scheduler writes: bindings, events, leases."""

from kubestow.api.meta import ApiObject, Base, ObjectReference


class Binding(ApiObject, frozen=True):
    target: ObjectReference = ObjectReference()


class LeaseSpec(Base, frozen=True):
    holderIdentity: str | None = None
    leaseDurationSeconds: int | None = None
    acquireTime: str | None = None
    renewTime: str | None = None
    leaseTransitions: int | None = None
    strategy: str | None = None
    preferredHolder: str | None = None


class Lease(ApiObject, frozen=True):
    spec: LeaseSpec = LeaseSpec()


class EventSeries(Base, frozen=True):
    count: int = 0
    lastObservedTime: str | None = None


class Event(ApiObject, frozen=True):
    """An events.k8s.io/v1 event."""

    eventTime: str | None = None
    series: EventSeries | None = None
    reportingController: str = ""
    reportingInstance: str = ""
    action: str = ""
    reason: str = ""
    regarding: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    note: str = ""
    type: str = ""
