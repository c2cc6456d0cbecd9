#!/usr/bin/env python3
"""Find words of the former idiom in code, tests and documentation. CONTRIBUTING.md lists what to write instead.

`make check` runs it. Only words without a legitimate use in the tree are listed.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORDS = ("anew", "lately", "likewise", "nobody", "somebody", "so many", "tells", "told", "whoever")
CHECKED = ("src/*.py", "src/*.js", "docs/*.md", "tests/*.py", "tests/*.md", "README.md", "CHANGELOG.md")
NAMES = ("nobody", "somebody")
"""Names of users, plugins and schedulers in the data of tests; tests may contain them."""
VENDORED = "src/kubestow/insight/page/static/vendor/"

_WORDS = re.compile(rf"\b({'|'.join(WORDS)})\b", re.IGNORECASE)


def findings() -> list[str]:
    """Return a line for each use of a listed word."""
    listed = subprocess.run(["git", "ls-files", "-z", "--", *CHECKED], cwd=ROOT, capture_output=True, check=True)
    names = [name for name in listed.stdout.decode().split("\0") if name and not name.startswith(VENDORED)]
    return [
        f"{name}:{number}: '{word}': see the word list in CONTRIBUTING.md"
        for name in names
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1)
        for word in _WORDS.findall(line)
        if not (name.startswith("tests/") and word.lower() in NAMES)
    ]


if __name__ == "__main__":
    lines = findings()
    print("\n".join(lines), end="\n" if lines else "")
    sys.exit(bool(lines))
