"""How the scheduler introduces itself to the API server."""

import sys

import pytest

from kubestow.client.clients import user_agent


@pytest.mark.parametrize("program", ["/usr/bin/kubestow", "/site-packages/kubestow/__main__.py", "-c"])
def test_the_name_does_not_depend_on_how_it_was_started(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers record the name as the owner of fields: another start must not look like another owner."""
    monkeypatch.setattr(sys, "argv", [program])
    assert user_agent("scheduler").startswith("kubestow/v")
    assert user_agent("scheduler").endswith(" kubernetes/scheduler")
