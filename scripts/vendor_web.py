#!/usr/bin/env python3
"""Update the libraries that are served with the page: `scripts/vendor_web.py [--latest]`; `--check` compares hashes.

`static/vendor/vendored.json` lists them: package, version, licence, and each file with its hash. npm fetches packages
by name. As browsers cannot resolve "preact", it is replaced by a path; nothing else is changed.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

VENDOR = Path(__file__).parent.parent / "src/kubestow/insight/page/static/vendor"
LIST = VENDOR / "vendored.json"


def hash_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def problems() -> list[str]:
    """Return the differences between the list and the files."""
    listed = {
        name: entry["sha256"] for package in json.loads(LIST.read_text()) for name, entry in package["files"].items()
    }
    there = {file.name: hash_of(file) for file in VENDOR.glob("*.js")}
    return [
        f"{name} does not match {LIST.name}" for name in sorted(listed | there) if listed.get(name) != there.get(name)
    ]


def renew(package: dict[str, Any], latest: bool) -> None:
    """Fetch one package, write its files and its licence, and update version and hashes."""
    with tempfile.TemporaryDirectory() as scratch:
        name = f"{package['package']}@{'latest' if latest else package['version']}"
        packed = subprocess.run(
            ["npm", "pack", "--json", "--silent", name], cwd=scratch, check=True, capture_output=True, text=True
        )
        (details,) = json.loads(packed.stdout)
        package["version"] = details["version"]
        with tarfile.open(next(Path(scratch).glob("*.tgz"))) as archive:

            def text(member: str) -> str:
                file = archive.extractfile(f"package/{member}")
                assert file is not None
                return file.read().decode()

            package["licence"] = json.loads(text("package.json"))["license"]
            (VENDOR / f"{package['package'].split('/')[-1]}.LICENSE").write_text(text("LICENSE"))
            for file, entry in package["files"].items():
                source = re.sub(r"//# sourceMappingURL=.*", "", text(entry["from"])).rstrip() + "\n"
                (VENDOR / file).write_text(source.replace('from"preact"', 'from"./preact.js"'))
                entry["sha256"] = hash_of(VENDOR / file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latest", action="store_true", help="take the newest versions instead of those listed")
    parser.add_argument("--check", action="store_true", help="fetch nothing; fail if a file differs from its hash")
    options = parser.parse_args()
    if options.check:
        sys.exit("\n".join(problems()) or 0)
    packages = json.loads(LIST.read_text())
    for package in packages:
        renew(package, options.latest)
        print(package["package"], package["version"], package["licence"])
    LIST.write_text(json.dumps(packages, indent=2) + "\n")


if __name__ == "__main__":
    main()
