"""The files of the page: their size, vendored packages, and no code that turns text into markup."""

from support.project_scripts import load_script
from support.repository import ROOT

STATIC = ROOT / "src/kubestow/insight/page/static"
SERVED = [file for file in STATIC.rglob("*") if file.suffix in (".css", ".html", ".js", ".svg")]


def test_the_page_is_small() -> None:
    """All files that a browser may load are less than 160,000 bytes, uncompressed."""
    assert sum(file.stat().st_size for file in SERVED) < 160_000


def test_vendored_files_match_the_list() -> None:
    """Hashes agree, and each package has its licence."""
    assert load_script("vendor_web").problems() == []
    assert {file.stem for file in (STATIC / "vendor").glob("*.LICENSE")} == {"htm", "preact"}


def test_text_never_becomes_markup() -> None:
    """The page's own modules set no inner HTML, evaluate no text, and name no other host."""
    for file in SERVED:
        text = file.read_text()
        if file.parent.name != "vendor":
            for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
                assert word not in text, f"{file.name} has {word}"
        hosts = text.replace("http://www.w3.org/", "")
        assert file.parent.name == "vendor" or "://" not in hosts, f"{file.name} names a host"
