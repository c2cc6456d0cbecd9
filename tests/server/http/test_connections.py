"""The limit of connections, and what they share."""

import asyncio
import errno
import resource
import socket

import pytest

from kubestow.server.http.limits import Limits
from kubestow.server.http.messages import Response
from support.client import virtualtime
from support.server.talking import GET, Client, Echo, Run, Tls, serving, until


async def _is_closed(client: Client) -> bool:
    client.send(GET)
    return await client.rest() == b""


def test_one_connection_too_many_is_closed(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """The existing ones are still served; when one closes, another can connect. The log has one warning."""

    async def main() -> None:
        async with serving(Echo(), Limits(connections=3)) as served:
            clients = [await served.client() for _ in range(3)]
            for client in clients:
                assert (await client.ask(GET)).status == 200
            for _ in range(20):
                assert await _is_closed(await served.client())
            for client in clients:
                assert (await client.ask(GET)).status == 200
            clients[0].leave()
            await until(lambda: len(served.connections) == 2)
            assert (await (await served.client()).ask(GET)).status == 200

    run(main())
    assert caplog.messages.count("New connections are closed: the limit is reached limit=3") == 1


def test_connections_in_their_handshake_count(run: Run, tls: Tls) -> None:
    """A failed handshake frees its slot."""

    async def main() -> None:
        async with serving(Echo(), Limits(connections=2), tls) as served:
            waiting = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(2)]
            await until(lambda: len(served.server._handshaking) == 2)
            with pytest.raises(OSError):  # noqa: PT011 reset or closed, as the moment has it
                await served.client()
            waiting[0][1].write(b"nonsense\r\n\r\n")
            await Client(*waiting[0]).rest()
            await until(lambda: len(served.server._handshaking) == 1)
            assert (await (await served.client()).ask(GET)).status == 200
            for _, writer in waiting:
                writer.close()

    run(main())


def test_connections_leave_files_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the files that the process may open."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (4, 4))

    async def main() -> None:
        async with serving(Echo()) as served:
            clients = [await served.client() for _ in range(3)]
            for client in clients:
                assert (await client.ask(GET)).status == 200
            assert await _is_closed(await served.client())

    asyncio.run(main())


def test_running_out_of_files_is_temporary(caplog: pytest.LogCaptureFixture) -> None:
    """New connections wait in the queue of the kernel, and are accepted later."""

    async def main() -> None:
        async with serving(Echo()) as served:
            loop = asyncio.get_running_loop()
            accept, refused = loop.sock_accept, 0

            async def exhausted(listener: socket.socket) -> tuple[socket.socket, object]:
                nonlocal refused
                if refused < 3:
                    refused += 1
                    raise OSError(errno.EMFILE, "Too many open files")
                return await accept(listener)

            loop.sock_accept = exhausted  # type: ignore[assignment, method-assign]
            first = await served.client()
            assert (await first.ask(GET)).status == 200
            second = await served.client()
            assert (await second.ask(GET)).status == 200
            assert refused == 3

    virtualtime.run(main())
    assert 'New connections cannot be accepted err="[Errno 24] Too many open files"' in caplog.messages


def test_a_shared_response_cannot_be_changed() -> None:
    """Handlers share constants."""
    shared = Response(200, b"ok")
    for field in ("status", "body", "headers", "content_type"):
        with pytest.raises(AttributeError):
            setattr(shared, field, None)


def test_all_addresses_are_ipv4_and_ipv6(run: Run) -> None:
    """Without an address, IPv4 and IPv6 clients are served on the same port."""

    async def main() -> None:
        async with serving(Echo(), address="") as served:
            for host in ("127.0.0.1", "::1") if socket.has_dualstack_ipv6() else ("127.0.0.1",):
                client = Client(*await asyncio.open_connection(host, served.port))
                assert (await client.ask(GET)).status == 200
                client.leave()

    run(main())
