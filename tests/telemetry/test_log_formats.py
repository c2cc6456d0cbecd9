"""The formats of log records: text and JSON."""

import json
import logging
import time
from collections.abc import Iterator
from logging import ERROR, INFO, WARNING
from typing import Any

import pytest

from kubestow.api.meta import OwnerReference
from kubestow.telemetry.log_formats import JsonFormatter, TextFormatter
from kubestow.telemetry.log_messages import Message, quote

NOW = 1_794_723_146.453203


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def entry(
    level: int = INFO, v: int = 0, error: BaseException | str | None = None, message: str = "Moved", **values: Any
) -> logging.LogRecord:
    text = Message(message, error, values)
    record = logging.LogRecord(
        "kubestow.scheduler.queue.retry", level - v, "/app/src/kubestow/scheduler/queue/retry.py", 90, text, None, None
    )
    record.created, record.process = NOW, 12345
    return record


HEAD = "1115 06:12:26.453203   12345 retry.py:90] "


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (entry(pod="default/web", attempts=2), f'I{HEAD}"Moved" pod="default/web" attempts=2\n'),
        (entry(WARNING), f'W{HEAD}"Moved"\n'),
        (entry(ERROR, error=KeyError("x"), pod="a/b"), f'E{HEAD}"Moved" err="\'x\'" pod="a/b"\n'),
        (entry(ERROR, error=TimeoutError()), f'E{HEAD}"Moved" err="TimeoutError"\n'),
        (entry(ERROR, error="gone"), f'E{HEAD}"Moved" err="gone"\n'),
        (entry(on=True, share=0.5, node=None), f'I{HEAD}"Moved" on=true share=0.5 node=<nil>\n'),
        (entry(nodes=["a", "b"], more={"x": 1}), f'I{HEAD}"Moved" nodes=["a","b"] more={{"x":1}}\n'),
        (entry(owner=OwnerReference(kind="Job")), f'I{HEAD}"Moved" owner={{"kind":"Job"}}\n'),
        (entry(text="one\ntwo"), f'I{HEAD}"Moved" text=<\n\tone\n\ttwo\n >\n'),
        (entry(text="one\ntwo\n", pod="p"), f'I{HEAD}"Moved" text=<\n\tone\n\ttwo\n > pod="p"\n'),
        (entry(message='say "x"\n'), f'I{HEAD}"say \\"x\\"\\n"\n'),
        (entry(body=b"abc"), f'I{HEAD}"Moved" body="<3 bytes>"\n'),
    ],
)
def test_text(given: logging.LogRecord, line: str) -> None:
    """Text has klog's header, the quoted message, the error, then the values, strings quoted."""
    assert TextFormatter().format(given) + "\n" == line


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        (
            entry(v=3, pod="default/web", attempts=2),
            {"v": 3, "pod": {"name": "web", "namespace": "default"}, "attempts": 2},
        ),
        (entry(WARNING), {"v": 0}),
        (entry(ERROR, error=ValueError("bad"), pod="a/b"), {"pod": {"name": "b", "namespace": "a"}, "err": "bad"}),
        (entry(pod="a", pods=["a/b"]), {"v": 0, "pod": "a", "pods": ["a/b"]}),
        (entry(text="one\ntwo", node=None), {"v": 0, "text": "one\ntwo", "node": None}),
        (entry(owner=OwnerReference(kind="Job")), {"v": 0, "owner": {"kind": "Job"}}),
        (entry(where=object), {"v": 0, "where": "<class 'object'>"}),
    ],
)
def test_json(given: logging.LogRecord, fields: dict[str, Any]) -> None:
    """JSON has time in milliseconds, caller with its folder, message, then v and values; errors have err and no v."""
    line = JsonFormatter().format(given)
    expected = {"ts": 1_794_723_146_453.203, "caller": "queue/retry.py:90", "msg": "Moved", **fields}
    assert json.loads(line) == expected
    assert list(json.loads(line)) == list(expected)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("plain", '"plain"'),
        ("naïve 世界", '"naïve 世界"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("tab\tbell\a\x01\x7f", '"tab\\tbell\\a\\x01\\x7f"'),
        ("\u00a0\u2028\U000e0001", '"\\u00a0\\u2028\\U000e0001"'),
    ],
)
def test_quoting(text: str, quoted: str) -> None:
    """Strings are quoted as in Go."""
    assert quote(text) == quoted


class Unshowable:
    def __str__(self) -> str:
        raise RuntimeError("no")


def test_a_value_that_cannot_be_shown_does_not_raise() -> None:
    """A value that cannot be converted to text is replaced by a message instead of raising."""
    assert "Unshowable cannot be shown: RuntimeError('no')" in TextFormatter().format(entry(value=Unshowable()))


def test_any_handler_can_format_a_record() -> None:
    """Python's own formatter writes the text and the values, and a name for every verbosity."""
    ordinary = logging.Formatter("%(levelname)s %(name)s: %(message)s")
    record = entry(v=3, error=ValueError("bad"), pod="a/b", token="t0ps3cret")
    assert ordinary.format(record) == 'V3 kubestow.scheduler.queue.retry: Moved err="bad" pod="a/b" token="<redacted>"'
