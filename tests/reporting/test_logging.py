"""Who may say how much, and where it goes."""

import io
import logging
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from kubestow.reporting import logs
from kubestow.reporting.log_setup import LogOptions, LogOutput, parse_modules
from kubestow.reporting.logs import ModuleLevel, get_logger

Open = Callable[..., SimpleNamespace]


@pytest.fixture
def open_output() -> Iterator[Open]:
    outputs: list[LogOutput] = []

    def opened(**options: object) -> SimpleNamespace:
        out, err = io.StringIO(), io.StringIO()
        output = LogOutput(LogOptions(**options), out, err, now=lambda: 0.0)  # type: ignore[arg-type]
        output.open()
        outputs.append(output)
        return SimpleNamespace(out=out.getvalue, err=err.getvalue, output=output)

    yield opened
    for output in outputs:
        output.close()


def said(text: str) -> list[str]:
    """The severities and messages of the lines."""
    return [f"{line[0]} {line.partition('] ')[2]}" for line in text.splitlines()]


def test_nothing_is_said_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a sink, logging anything does nothing."""
    log = get_logger("kubestow.some.module")
    log.info("News")
    log.error("Trouble", err="x")
    assert log.verbosity == logs.SILENT
    assert capsys.readouterr() == ("", "")


def test_verbosity(open_output: Open) -> None:
    """News up to the verbosity is told, errors and warnings always, by loggers made before and after."""
    early = get_logger("kubestow.early")
    streams = open_output(verbosity=3)
    for log in (early, get_logger("kubestow.late")):
        log.info("Always")
        log.info("Details", v=3, pod="a/b")
        log.info("Debugging", v=4)
        log.warning("Careful")
        log.error("Trouble", err=ValueError("bad"))
    expected = ['I "Always"', 'I "Details" pod="a/b"', 'W "Careful"', 'E "Trouble" err="bad"']
    assert said(streams.err()) == expected * 2
    assert streams.out() == ""


def test_verbosity_changes_while_running(open_output: Open) -> None:
    """Verbosity can be raised in a running scheduler."""
    streams = open_output()
    log = get_logger("kubestow.running")
    log.info("Before", v=5)
    streams.output.set_verbosity(5)
    log.info("After", v=5)
    assert said(streams.err()) == ['I "After"']


def test_the_caller_is_named(open_output: Open) -> None:
    """Every line says which file it comes from."""
    streams = open_output()
    get_logger(__name__).info("Here")
    assert " test_logging.py:" in streams.err()


@pytest.mark.parametrize(
    ("text", "name", "verbosity"),
    [
        ("retry=4", "kubestow.queue.retry", 4),
        ("ret*=4", "kubestow.queue.retry", 4),
        ("retry.py=4", "kubestow.queue.retry", 4),
        ("retry=4", "kubestow.queue.heap", 2),
        ("kubestow/queue/*=5", "kubestow.queue.retry", 5),
        ("kubestow/queue/*=5", "kubestow.cycle.retry", 2),
        ("retry=3, r*=9", "kubestow.queue.retry", 3),
        ("retry=1", "kubestow.queue.retry", 2),
    ],
)
def test_more_verbosity_for_some_modules(open_output: Open, text: str, name: str, verbosity: int) -> None:
    """--vmodule raises the verbosity of the modules it matches, by the first pattern that does."""
    open_output(verbosity=2, modules=parse_modules(text))
    assert get_logger(name).verbosity == verbosity


def test_module_patterns_are_read() -> None:
    """Empty parts between commas are ignored."""
    assert parse_modules("") == ()
    assert parse_modules("a=1,,b*=2") == (ModuleLevel("a", 1), ModuleLevel("b*", 2))


@pytest.mark.parametrize("text", ["a", "a=", "=3", "a=x", "a=-1"])
def test_bad_module_patterns_are_named(text: str) -> None:
    """A pattern without a level is an error that shows how it is written."""
    with pytest.raises(ValueError, match="is not a pattern and a level such as"):
        parse_modules(text)


def test_bad_options() -> None:
    """An unknown format or a negative verbosity is refused."""
    with pytest.raises(ValueError, match="unknown log format 'xml': choose one of json, text"):
        LogOptions(format="xml")
    with pytest.raises(ValueError, match="must not be negative, and is -1"):
        LogOptions(verbosity=-1)


def test_split_streams_with_a_buffer(open_output: Open) -> None:
    """News is collected until the buffer is full, an error comes, or it is flushed; errors go to the other stream."""
    streams = open_output(split_stream=True, info_buffer_size=150)
    log = get_logger("kubestow.split")
    log.info("One")
    assert streams.out() == ""
    log.error("Trouble")
    assert said(streams.out()) == ['I "One"']
    assert said(streams.err()) == ['E "Trouble"']
    log.info("Two")
    streams.output.flush()
    assert said(streams.out())[1:] == ['I "Two"']
    for _ in range(3):
        log.info("Three")
    assert said(streams.out())[2:] == ['I "Three"'] * 3


def test_json_format(open_output: Open) -> None:
    """With --logging-format=json every line is an object."""
    streams = open_output(format="json")
    get_logger("kubestow.json").info("News", pod="a/b")
    assert streams.err().startswith('{"ts":0.0,"caller":"reporting/test_logging.py:')
    assert streams.err().endswith('"msg":"News","v":0,"pod":"a/b"}\n')


def test_libraries_come_out_the_same_way(open_output: Open) -> None:
    """Warnings and errors told to Python's logging are written; news of libraries only when much is wanted."""
    streams = open_output()
    library = logging.getLogger("some.library")
    library.info("news")
    library.warning("careful with %s", "that")
    logging.getLogger("kubestow.client").info("listed")
    assert said(streams.err()) == [
        'W "careful with that" logger="some.library"',
        'I "listed" logger="kubestow.client"',
    ]
    streams.output.set_verbosity(4)
    library.info("news")
    library.debug("noise")
    assert said(streams.err())[2:] == ['I "news" logger="some.library"']


def test_unforeseen_errors_tell_where(open_output: Open) -> None:
    """An exception is shown with its stack, from the project's loggers and from libraries."""
    streams = open_output()
    try:
        raise RuntimeError("boom")
    except RuntimeError as error:
        get_logger("kubestow.x").unexpected("Lost", err=error, pod="a/b")
        logging.getLogger("asyncio").exception("task failed")
    text = streams.err()
    assert '"Lost" err="boom" pod="a/b" stacktrace=<\n\tTraceback' in text
    assert '"task failed" err="boom" logger="asyncio" stacktrace=<\n\tTraceback' in text


def test_a_library_call_with_wrong_arguments(open_output: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message whose arguments do not fit is written as it is, with the fault."""
    streams = open_output()
    monkeypatch.setattr(logging.getLogger(), "handlers", [streams.output._library])
    logging.getLogger("some.library").error("%d things", "many")
    assert 'E "%d things" err=' in said(streams.err())[0]


def test_python_warnings_are_logged(open_output: Open) -> None:
    """What libraries warn of becomes a line, too."""
    streams = open_output()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old way", UserWarning, stacklevel=1)
    assert "UserWarning: old way" in streams.err()


def test_a_reader_that_went_away_is_no_error() -> None:
    """Writing to a closed stream is given up silently."""
    closed = io.StringIO()
    closed.close()
    output = LogOutput(LogOptions(), closed, closed)
    output.open()
    try:
        get_logger("kubestow.closed").info("News")
    finally:
        output.close()
