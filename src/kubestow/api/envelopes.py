"""Wrappers of API objects: lists, watch events, and the Status that reports an error."""

from msgspec import Raw

from kubestow.api.meta import ApiObject, Base


class ListMeta(Base, frozen=True, rename={"continue_": "continue"}):
    resourceVersion: str = ""
    remainingItemCount: int | None = None
    # `continue` is a Python keyword.
    continue_: str = ""


class StatusCause(Base, frozen=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Base, frozen=True):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retryAfterSeconds: int = 0


class Status(Base, frozen=True):
    """The response of an API server that is not an object: mostly errors."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


class Updated(ApiObject, frozen=True):
    """The response to an update, of which only the metadata is read."""


class RawList(Base, frozen=True):
    """A list whose items are decoded one by one, so that an invalid item does not affect the others."""

    metadata: ListMeta = ListMeta()
    items: tuple[Raw, ...] = ()


class WatchEvent(Base, frozen=True):
    """A line of a watch; `type` determines how `object` is decoded."""

    type: str = ""
    object: Raw = Raw()


class BookmarkMeta(Base, frozen=True):
    resourceVersion: str = ""
    annotations: dict[str, str] = {}


class Bookmark(Base, frozen=True):
    """The object of a BOOKMARK event: a resource version only."""

    metadata: BookmarkMeta = BookmarkMeta()


class GroupVersion(Base, frozen=True):
    version: str = ""


class ApiGroup(Base, frozen=True):
    """The versions of an API group, as in discovery."""

    versions: tuple[GroupVersion, ...] = ()


class ApiResource(Base, frozen=True):
    name: str = ""


class ApiResourceList(Base, frozen=True):
    """The resources of a version of an API group, as in discovery."""

    resources: tuple[ApiResource, ...] = ()
