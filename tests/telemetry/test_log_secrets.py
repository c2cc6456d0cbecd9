"""Secrets never reach a log in any form."""

import logging
from typing import Any

import pytest

from kubestow.telemetry.log_formats import JsonFormatter, TextFormatter
from kubestow.telemetry.log_messages import Message
from kubestow.telemetry.secrets import redact_text

HIDDEN = "s3cr3t-Value"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"


def lines(message: str, error: BaseException | str | None = None, **values: Any) -> list[str]:
    text = Message(message, error, values)
    record = logging.LogRecord("x", logging.ERROR, "/x.py", 1, text, None, None)
    return [kind().format(record) for kind in (TextFormatter, JsonFormatter, logging.Formatter)]


@pytest.mark.parametrize(
    "values",
    [
        {"token": HIDDEN},
        {"idToken": HIDDEN},
        {"refresh_token": HIDDEN},
        {"password": HIDDEN},
        {"Authorization": f"Custom {HIDDEN}"},
        {"client_secret": HIDDEN},
        {"user": {"name": "x", "token": HIDDEN}},
        {"users": [{"client-key-data": HIDDEN}]},
        {"body": HIDDEN.encode()},
        {"url": f"https://admin:{HIDDEN}@example.com/path"},
        {"headers": f"Authorization: Bearer {HIDDEN}"},
        {"headers": f"authorization: basic {HIDDEN}"},
    ],
    ids=str,
)
def test_values(values: dict[str, Any]) -> None:
    """Values under the name of a secret, and credentials in text, are replaced in every format."""
    for line in lines("Login", **values):
        assert HIDDEN not in line
        assert "redacted" in line or "bytes" in line


@pytest.mark.parametrize(
    "text",
    [
        f"request with Bearer {HIDDEN} failed",
        f"https://user:{HIDDEN}@proxy:3128 refused",
        f'{{"token": "{HIDDEN}"}}',
        f"?access_token={HIDDEN}&x=1",
        f"password: {HIDDEN}",
        f"PA\u017fSWORD: {HIDDEN}",
        f"to\u212aen={HIDDEN}",
        f"clIent-Key-Data: {HIDDEN}",
        f"-----BEGIN RSA PRIVATE KEY-----\n{HIDDEN}\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\n{HIDDEN}",
    ],
)
def test_messages_and_errors(text: str) -> None:
    """Credentials in messages and errors are replaced; the rest of the text is kept."""
    for line in (*lines(text), *lines("Failed", error=RuntimeError(text))):
        assert HIDDEN not in line
        assert "<redacted>" in line


def test_tokens_are_recognized_by_their_form() -> None:
    """A JSON web token is replaced wherever it is."""
    assert redact_text(f"got {JWT} from server") == "got <redacted> from server"


@pytest.mark.parametrize(
    "text",
    ["invalid token: expired", "the basic scheduler", "default/web:80@n1", "https://host:6443/api", "tokenreviews"],
)
def test_ordinary_text_is_kept(text: str) -> None:
    """Text that only resembles credentials is kept."""
    assert redact_text(text) == text
