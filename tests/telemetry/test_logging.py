"""Verbosity of the loggers, and the output of log lines."""

import ast
import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import kubestow
from kubestow.telemetry.log_setup import LogOptions, LogOutput, parse_modules
from kubestow.telemetry.logs import WARNINGS_ONLY, ModuleLevel, get_logger

Open = Callable[..., SimpleNamespace]
PACKAGE = Path(kubestow.__file__).parent


@pytest.fixture
def open_output() -> Iterator[Open]:
    outputs: list[LogOutput] = []

    def opened(**options: object) -> SimpleNamespace:
        out, err = io.StringIO(), io.StringIO()
        output = LogOutput(LogOptions(**options), out, err)  # type: ignore[arg-type]
        output.open()
        outputs.append(output)
        return SimpleNamespace(out=out.getvalue, err=err.getvalue, output=output)

    yield opened
    for output in outputs:
        output.close()


def messages(text: str) -> list[str]:
    """Return the severities and messages of the lines."""
    return [f"{line[0]} {line.partition('] ')[2]}" for line in text.splitlines()]


def test_nothing_is_written_without_an_output(capsys: pytest.CaptureFixture[str]) -> None:
    """Without an output, log records are not written."""
    log = get_logger("kubestow.some.module")
    log.info("News")
    log.error("Trouble", err="x")
    assert capsys.readouterr() == ("", "")


def test_verbosity(open_output: Open) -> None:
    """Info lines are written up to the verbosity, errors and warnings always, by loggers created before and after."""
    early = get_logger("kubestow.early")
    streams = open_output(verbosity=3)
    for log in (early, get_logger("kubestow.late")):
        log.info("Always")
        log.info("Details", v=3, pod="a/b")
        log.info("Debugging", v=4)
        log.warning("Careful")
        log.error("Trouble", err=ValueError("bad"))
    expected = ['I "Always"', 'I "Details" pod="a/b"', 'W "Careful"', 'E "Trouble" err="bad"']
    assert messages(streams.err()) == expected * 2
    assert streams.out() == ""


def test_order_and_lines_of_klog(open_output: Open) -> None:
    """`err` is first in errors, and a value like others in info lines; `line` quotes only several lines."""
    streams = open_output(verbosity=1)
    log = get_logger("kubestow.words")
    log.info("No fit", pod="a/b", err="too large")
    log.info("Again", err=TimeoutError(), pod="a/b")
    log.error("No answer", pod="a/b", err="gone")
    log.line('FLAG: --v="1"', v=1)
    log.line("details", v=2)
    log.line("one\ntwo")
    assert messages(streams.err()) == [
        'I "No fit" pod="a/b" err="too large"',
        'I "Again" pod="a/b" err="TimeoutError"',
        'E "No answer" err="gone" pod="a/b"',
        'I FLAG: --v="1"',
        'I "one\\ntwo"',
    ]


def test_verbosity_changes_while_running(open_output: Open) -> None:
    """The verbosity can be raised in a running scheduler."""
    streams = open_output()
    log = get_logger("kubestow.running")
    log.info("Before", v=5)
    streams.output.set_verbosity(5)
    log.info("After", v=5)
    assert messages(streams.err()) == ['I "After"']


def test_the_caller_is_named(open_output: Open) -> None:
    """Every line contains the file of its caller."""
    streams = open_output()
    get_logger(__name__).info("Here")
    assert " test_logging.py:" in streams.err()


@pytest.mark.parametrize(
    ("text", "name", "verbosity"),
    [
        ("retry=4", "kubestow.scheduler.queue.retry", 4),
        ("ret*=4", "kubestow.scheduler.queue.retry", 4),
        ("retry.py=4", "kubestow.scheduler.queue.retry", 4),
        ("retry=4", "kubestow.scheduler.queue.heap", 2),
        ("kubestow/scheduler/queue/*=5", "kubestow.scheduler.queue.retry", 5),
        ("kubestow/scheduler/queue/*=5", "kubestow.scheduler.cycle.retry", 2),
        ("retry=3, r*=9", "kubestow.scheduler.queue.retry", 3),
        ("retry=1", "kubestow.scheduler.queue.retry", 2),
    ],
)
def test_more_verbosity_for_some_modules(open_output: Open, text: str, name: str, verbosity: int) -> None:
    """--vmodule raises the verbosity of the modules of the first pattern that matches."""
    open_output(verbosity=2, modules=parse_modules(text))
    log = get_logger(name)
    assert log.is_enabled(verbosity)
    assert not log.is_enabled(verbosity + 1)


def test_module_patterns_are_parsed() -> None:
    """Empty parts between commas are ignored."""
    assert parse_modules("") == ()
    assert parse_modules("a=1,,b*=2") == (ModuleLevel("a", 1), ModuleLevel("b*", 2))


@pytest.mark.parametrize("text", ["a", "a=", "=3", "a=x", "a=-1"])
def test_invalid_module_patterns_are_named(text: str) -> None:
    """The error for a pattern without a level shows the syntax."""
    with pytest.raises(ValueError, match="is not PATTERN=LEVEL, such as"):
        parse_modules(text)


def test_invalid_options() -> None:
    """An unknown format or an invalid verbosity is rejected."""
    with pytest.raises(ValueError, match="unknown log format 'xml': choose one of json, text"):
        LogOptions(format="xml")
    with pytest.raises(ValueError, match=r"must be -1 \(warnings only\) or more, not -2"):
        LogOptions(verbosity=-2)


def test_split_streams_with_a_buffer(open_output: Open) -> None:
    """Info lines are buffered until the buffer is full or flushed, or an error is logged, which has another stream."""
    streams = open_output(split_stream=True, info_buffer_size=150)
    log = get_logger("kubestow.split")
    log.info("One")
    assert streams.out() == ""
    log.error("Trouble")
    assert messages(streams.out()) == ['I "One"']
    assert messages(streams.err()) == ['E "Trouble"']
    log.info("Two")
    streams.output.flush()
    assert messages(streams.out())[1:] == ['I "Two"']
    for _ in range(3):
        log.info("Three")
    assert messages(streams.out())[2:] == ['I "Three"'] * 3


def test_json_format(open_output: Open) -> None:
    """With --logging-format=json every line is an object."""
    streams = open_output(format="json")
    get_logger("kubestow.json").info("News", pod="a/b")
    assert ',"caller":"telemetry/test_logging.py:' in streams.err()
    assert streams.err().endswith('"msg":"News","v":0,"pod":{"name":"b","namespace":"a"}}\n')


def test_records_of_libraries_have_the_same_format(open_output: Open) -> None:
    """Their warnings and errors are always written, other records only at a high verbosity."""
    streams = open_output()
    library = logging.getLogger("some.library")
    library.info("info_lines")
    library.warning("careful with %s", "that")
    assert messages(streams.err()) == ['W "careful with that" logger="some.library"']
    streams.output.set_verbosity(4)
    library.info("info_lines")
    library.debug("noise")
    streams.output.set_verbosity(10)
    library.debug("details")
    assert messages(streams.err())[1:] == ['I "info_lines" logger="some.library"', 'I "details" logger="some.library"']


def test_unexpected_errors_have_a_stack_trace(open_output: Open) -> None:
    """An exception is written with its stack trace, from the project's loggers and from libraries."""
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
    """A message whose arguments do not fit is written unformatted, with the error."""
    streams = open_output()
    monkeypatch.setattr(logging.getLogger(), "handlers", [streams.output])
    logging.getLogger("some.library").error("%d things", "many")
    assert 'E "%d things" err=' in messages(streams.err())[0]


def test_python_warnings_are_logged(open_output: Open) -> None:
    """Warnings of the warnings module are logged, too."""
    streams = open_output()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old way", UserWarning, stacklevel=1)
    assert "UserWarning: old way" in streams.err()


def test_a_closed_stream_is_not_an_error() -> None:
    """Errors of writing to a closed stream are ignored."""
    closed = io.StringIO()
    closed.close()
    output = LogOutput(LogOptions(), closed, closed)
    output.open()
    try:
        get_logger("kubestow.closed").info("News")
    finally:
        output.close()


def test_only_warnings(open_output: Open) -> None:
    """Without info lines, warnings and errors are still written."""
    streams = open_output(verbosity=WARNINGS_ONLY)
    log = get_logger("kubestow.quiet")
    log.info("News")
    log.warning("Careful")
    assert messages(streams.err()) == ['W "Careful"']


def test_records_reach_the_handlers_of_a_program_that_embeds_the_scheduler(caplog: pytest.LogCaptureFixture) -> None:
    """Levels are set as for any library, by the name of a package; the record contains module, verbosity and caller."""
    caplog.set_level(logging.INFO - 3, "kubestow.scheduler.queue")
    get_logger("kubestow.scheduler.queue.retry").info("Moved", v=3, pod="a/b")
    get_logger("kubestow.scheduler.queue.retry").info("Details", v=4)
    get_logger("kubestow.scheduler.cycle").info("Elsewhere")
    assert caplog.messages == ['Moved pod="a/b"']
    record = caplog.records[0]
    assert (record.name, record.levelname, record.filename) == (
        "kubestow.scheduler.queue.retry",
        "V3",
        "test_logging.py",
    )


def test_every_module_logs_the_same_way() -> None:
    """Loggers are created in one way, under the module's name, so that -v and --vmodule apply to all of them."""
    for path in sorted(PACKAGE.rglob("*.py")):
        code = re.sub(r'""".*?"""', "", path.read_text(), flags=re.DOTALL)
        assert not re.search(r"\bprint\(", code), path
        assert path.parent.name == "telemetry" or "import logging" not in code, path
        assert path.name == "logs.py" or set(re.findall(r"get_logger\((.*)\)", code)) <= {"__name__"}, path


def info_lines() -> dict[str, int]:
    """Return the verbosity of all info lines of the project, by message."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "log.info":
                values = {keyword.arg: keyword.value for keyword in node.keywords}
                found[ast.unparse(node.args[0]).strip("'\"")] = ast.literal_eval(values.get("v", ast.Constant(0)))
    return found


def test_the_page_has_the_verbosities() -> None:
    """The page about logging has examples for each verbosity, which are right, and has a row for each verbosity."""
    page = (PACKAGE.parents[1] / "docs/reference/logging.md").read_text()
    rows = re.findall(r"^\| (\d+) \| .* \| (.*) \|$", page, re.MULTILINE)
    found = info_lines()
    examples = {message: int(v) for v, cell in rows for message in re.findall(r"`(.+?)`", cell)}
    assert examples == {message: found[message] for message in examples}
    assert set(found.values()) <= {int(v) for v, _ in rows}
