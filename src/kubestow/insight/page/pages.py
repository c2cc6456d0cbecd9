"""The URLs below /ui: the static files of the page, which contain no data, and the API."""

import hashlib
import mimetypes
from importlib import resources
from importlib.resources.abc import Traversable

from kubestow.insight.page import api
from kubestow.insight.page.api import Api
from kubestow.server.http.errors import ApiError
from kubestow.server.http.messages import Request, Response
from kubestow.server.pages import Answer, Page

ROOT = "/ui"
_INDEX = "index.html"


class File:
    """A static file with its headers."""

    def __init__(self, name: str, content: bytes) -> None:
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        text = "; charset=utf-8" if kind.startswith("text/") else ""
        self.tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        self._whole = Response(200, content, f"{kind}{text}".encode(), (("ETag", self.tag),))
        self._same = Response(304, b"", f"{kind}{text}".encode(), (("ETag", self.tag),))

    def answer(self, request: Request) -> Response:
        """Return the file, or 304 if the client has it already."""
        return self._same if self.tag in request.header(b"if-none-match") else self._whole


class Site:
    """The pages below /ui."""

    def __init__(self, answers: Api) -> None:
        self._api = answers
        self._files = {f"{ROOT}/{name}": File(name, content) for name, content in _files()}
        self._files[f"{ROOT}/"] = self._files[f"{ROOT}/{_INDEX}"]
        self.path = ROOT
        self.posts: dict[str, Page] = {api.TRY: answers.post, api.COMPARE: answers.post}

    @property
    def open_paths(self) -> tuple[str, ...]:
        """The paths that need no authorization: all except the API."""
        return (ROOT, *self._files)

    def answer(self, request: Request) -> Answer:
        """Answer a GET. Raises ApiError if the page does not exist."""
        if request.path == api.PATH or request.path.startswith(f"{api.PATH}/"):
            return self._api.answer(request)
        if request.path == ROOT:
            return Response(308, b"", headers=(("Location", f"{ROOT}/"),))
        file = self._files.get(request.path)
        if file is None:
            raise ApiError(404, "NotFound", f"there is no page {request.path}")
        return file.answer(request)


def _files() -> list[tuple[str, bytes]]:
    """Return the paths and contents of the page's files."""
    found: list[tuple[str, bytes]] = []

    def walk(folder: Traversable, above: str) -> None:
        for entry in folder.iterdir():
            if entry.is_dir():
                walk(entry, f"{above}{entry.name}/")
            else:
                found.append((above + entry.name, entry.read_bytes()))

    walk(resources.files("kubestow.insight.page") / "static", "")
    return found
