"""The files of the page: few, small, as they were vendored, and nothing in them that makes markup of text."""

from pathlib import Path

from project_scripts import load_script

STATIC = Path(__file__).parents[2] / "src/kubestow/insight/page/static"
SERVED = [file for file in STATIC.rglob("*") if file.suffix in (".css", ".html", ".js", ".svg")]


def test_the_page_is_small() -> None:
    """Everything that a browser may load, uncompressed, is less than 150,000 bytes."""
    assert sum(file.stat().st_size for file in SERVED) < 150_000


def test_what_is_vendored_is_what_is_listed() -> None:
    """Hashes agree, and each package has its licence beside it."""
    assert load_script("vendor_web").problems() == []
    assert {file.stem for file in (STATIC / "vendor").glob("*.LICENSE")} == {"htm", "preact"}


def test_text_never_becomes_markup() -> None:
    """The page's own modules set no inner HTML, run no text as code, and name no other host."""
    for file in SERVED:
        text = file.read_text()
        if file.parent.name != "vendor":
            for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
                assert word not in text, f"{file.name} has {word}"
        hosts = text.replace("http://www.w3.org/", "")
        assert file.parent.name == "vendor" or "://" not in hosts, f"{file.name} names a host"
