"""Requests of decision pages, and a client that follows their stream."""

import asyncio
import json
import ssl
from typing import Any

from kubestow.server.pages import DECISIONS as PATH
from support.server.serving import Reader, Setting, served


def ask(setting: Setting, *paths: str) -> list[tuple[int, Any]]:
    async def main() -> list[tuple[int, Any]]:
        async with served(setting) as reader:
            answers = [await reader.get(path) for path in paths]
            return [(answer.status, json.loads(answer.text)) for answer in answers]

    return asyncio.run(main())


class Following:
    """A connection that follows decisions."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def until(self, start: bytes) -> bytes:
        """Return the next line with a prefix."""
        async with asyncio.timeout(300):
            while not (line := await self.reader.readline()).startswith(start):
                assert line, "the stream has ended"
        return line


async def follow(reader: Reader, query: str = "", page: str = PATH) -> Following:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    following = Following(*await asyncio.open_connection("127.0.0.1", reader.server.port, ssl=context))
    following.writer.write(f"GET {page}?watch=true{query} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    await following.until(b"\r\n")
    return following
