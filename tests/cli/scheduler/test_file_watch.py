"""Files are watched for what is in them, whichever way it gets there."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kubestow.cli.scheduler.file_watch import FileWatch


def in_place(path: Path, text: str) -> None:
    path.write_text(text)


def by_another(path: Path, text: str) -> None:
    other = path.with_suffix(".new")
    other.write_text(text)
    os.replace(other, path)


def by_a_new_file(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text)


def news(watch: FileWatch) -> list[bool]:
    """What three looks find."""
    return [watch.poll() for _ in range(3)]


@pytest.mark.parametrize("write", [in_place, by_another, by_a_new_file])
def test_a_change_is_reported_once_when_it_has_settled(tmp_path: Path, write: Callable[[Path, str], None]) -> None:
    """The look that finds it waits for the next one to find the same."""
    path = tmp_path / "config.yaml"
    path.write_text("one")
    watch = FileWatch([path])
    assert news(watch) == [False, False, False]
    write(path, "another")
    assert news(watch) == [False, True, False]


def test_a_change_between_reading_and_watching_is_reported(tmp_path: Path) -> None:
    """Of a file that is as it was when it was read nothing is."""
    path = tmp_path / "config.yaml"
    path.write_text("one")
    written = path.stat().st_ctime
    assert news(FileWatch([path], since=written + 10)) == [False, False, False]
    assert news(FileWatch([path, tmp_path / "missing"], since=written)) == [True, False, False]


def test_what_is_still_written_is_waited_for(tmp_path: Path) -> None:
    """Every step is seen, and only the last is reported."""
    path = tmp_path / "config.yaml"
    path.write_text("")
    watch = FileWatch([path])
    for step in ("a", "ab", "abc"):
        path.write_text(step)
        assert not watch.poll()
    assert watch.poll()


def test_the_same_text_is_no_change(tmp_path: Path) -> None:
    """Touched, or written again."""
    path = tmp_path / "config.yaml"
    path.write_text("one")
    watch = FileWatch([path])
    os.utime(path, (1, 1))
    assert not any(news(watch))
    by_another(path, "one")
    assert not any(news(watch))


def test_a_config_map_is_turned_to_another_version(tmp_path: Path) -> None:
    """As a kubelet mounts it: the file is a link into ..data, which is a link to the folder of a version."""
    for version in ("v1", "v2"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "config.yaml").write_text(version)
    (tmp_path / "..data").symlink_to("v1")
    path = tmp_path / "config.yaml"
    path.symlink_to("..data/config.yaml")
    watch = FileWatch([path])
    (tmp_path / "..data_tmp").symlink_to("v2")
    os.replace(tmp_path / "..data_tmp", tmp_path / "..data")
    assert news(watch) == [False, True, False]


def test_a_file_that_vanishes_and_comes_back_is_two_changes(tmp_path: Path) -> None:
    """The first of them cannot be loaded, which is reported."""
    path = tmp_path / "config.yaml"
    path.write_text("one")
    watch = FileWatch([path])
    path.unlink()
    assert news(watch) == [False, True, False]
    path.write_text("one")
    assert news(watch) == [False, True, False]


def test_all_modules_of_a_folder_are_watched(tmp_path: Path) -> None:
    """New ones, too; other files are not."""
    (tmp_path / "__init__.py").write_text("")
    watch = FileWatch([tmp_path])
    (tmp_path / "notes.txt").write_text("nothing")
    assert not any(news(watch))
    (tmp_path / "part.py").write_text("x = 1")
    assert any(news(watch))
    (tmp_path / "part.py").write_text("x = 1 + 1")
    assert any(news(watch))


def test_nothing_to_watch() -> None:
    """Files are not polled then."""
    assert not FileWatch([])
