"""Lists of a resource, page by page.

The API server returns a list from its cache (resourceVersion=0 or a known version) in one response, and a list from its
store in pages of 500. If a continue token expires, the whole list is requested again without pages.
"""

from functools import cache
from typing import Any, Generic, TypeVar

import msgspec

from kubestow.api import codec
from kubestow.api.envelopes import ListMeta, RawList
from kubestow.api.failures import BadAnswerError, GoneError
from kubestow.api.meta import Base
from kubestow.client.api import ApiClient
from kubestow.client.resources import ApiObject, Resource
from kubestow.client.watchlines import Unreadable, metadata_of

PAGE = 500

T = TypeVar("T", bound=ApiObject)


class _Page(Base, Generic[T], frozen=True):
    metadata: ListMeta
    items: list[T]


@cache
def _decoder(kind: type) -> "msgspec.json.Decoder[_Page[Any]] | None":
    """Return the decoder of a page of this kind; None if the codec must decode the objects."""
    return None if codec.keeps_source(kind) else msgspec.json.Decoder(_Page[kind])  # type: ignore[valid-type]


class Listed(msgspec.Struct, Generic[T], frozen=True):
    """All objects of a resource at one version; `in_pages` is set if the server split the list."""

    objects: list[T]
    unreadable: list[Unreadable]
    version: str
    in_pages: bool


class Lister(Generic[T]):
    """Lists one resource."""

    def __init__(self, client: ApiClient, resource: Resource[T]) -> None:
        self._client = client
        self._resource = resource

    async def fetch(self, version: str, page: int = PAGE) -> Listed[T]:
        """Return all objects, not older than `version` ("0": any version the server has cached; "": the latest)."""
        objects: list[T] = []
        unreadable: list[Unreadable] = []
        token = ""
        pages = 0
        while True:
            query = {
                "limit": str(page) if page else "",
                "continue": token,
                "resourceVersion": "" if token else version,
            }
            try:
                response = await self._client.request("GET", self._resource.url(query))
            except GoneError:
                if not token:
                    raise
                return await self.fetch(version, page=0)
            meta = self._decode(response.body, objects, unreadable)
            pages += 1
            token = meta.continue_
            if not token:
                return Listed(objects, unreadable, meta.resourceVersion, pages > 1)

    def _decode(self, body: bytes, objects: list[T], unreadable: list[Unreadable]) -> ListMeta:
        fast = _decoder(self._resource.kind)
        if fast is not None:
            try:
                page = fast.decode(body)
            except codec.NOT_JSON:
                pass  # an item cannot be decoded: find it below
            else:
                objects += page.items
                return page.metadata
        try:
            raw = codec.decode(RawList, body)
        except codec.DecodeError as error:
            raise BadAnswerError(f"GET {self._resource.path}: the answer is not a list: {error}") from None
        for item in raw.items:
            try:
                objects.append(codec.decode(self._resource.kind, item))
            except codec.DecodeError as error:
                unreadable.append(Unreadable("LISTED", metadata_of(item), str(error)))
        return raw.metadata
