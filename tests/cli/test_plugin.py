"""`kubestow plugin`: new, check, list; and what --plugin refuses."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from click.testing import CliRunner

from kubestow.cli import main
from kubestow.cli.plugin import check as plugin_check
from kubestow.plugin.loading import Loaded, PluginCollection, PluginLoadError, load
from support.repository import ROOT

EXAMPLES = ROOT / "examples"


def invoke(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["plugin", *args])
    return result.exit_code, result.output


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", ["spare-room", "SpareRoom"])
def test_new_writes_a_plugin_and_a_test_that_pass(tmp_path: Path, name: str) -> None:
    """Both as they are: checked, and tested."""
    assert invoke("new", name, "--dir", str(tmp_path))[0] == 0
    code, output = invoke("check", str(tmp_path / "spare_room.py"))
    assert code == 0, output
    assert "SpareRoom" in output
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_spare_room.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "2 passed" in ran.stdout, ran.stdout
    typed = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "--follow-imports=silent",
         "spare_room.py", "test_spare_room.py"],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": str(ROOT / "src")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert typed.returncode == 0, typed.stdout


def test_new_overwrites_nothing(tmp_path: Path) -> None:
    """A file that is there stays."""
    write(tmp_path / "mine.py", "precious")
    code, output = invoke("new", "mine", "--dir", str(tmp_path))
    assert (code, "mine.py already exists" in output) == (1, True)
    assert (tmp_path / "mine.py").read_text() == "precious"


@pytest.mark.parametrize("name", ["", "9lives", "a b", "../x", "NodePorts", "node-ports", "class", "json", "numpy"])
def test_new_refuses_names(tmp_path: Path, name: str) -> None:
    """What is no name, and names of the scheduler's own plugins."""
    assert invoke("new", name, "--dir", str(tmp_path))[0] == 2
    assert not list(tmp_path.iterdir())


def test_check_shows_what_a_pod_costs() -> None:
    """Beside the scheduler's own plugins."""
    code, output = invoke("check", str(EXAMPLES / "06_spare_memory.py"), "--args", "{percent: 20}")
    assert code == 0, output
    assert "forms agree on random clusters" in output
    assert "handles 10 unusual pods on unusual nodes" in output
    costs = output.partition("microseconds:")[2]
    assert {"SpareMemory", "NodeResourcesFit", "TaintToleration"} <= set(costs.split())
    assert "<-- this one" in costs


FENCED = """
import numpy as np
from kubestow.plugin import SKIP, CustomObject, custom_resource, unschedulable
from kubestow.plugin.fast import Rejections

@custom_resource("example.com/v1", "fences")
class Fence(CustomObject, frozen=True):
    node: str = ""

class Fenced:
    name = "Fenced"
    watches = (Fence,)

    def __init__(self, args, handle):
        self.fences = handle.objects(Fence)

    def pre_filter(self, pod):
        return {fence.node for fence in self.fences} if "fenced" in pod.labels else SKIP

    def filter(self, state, pod, node):
        return "fenced" if node.name in state else None

    def filter_rows(self, state, pod, view, rows):
        fenced = np.array([view.names[row] in state for row in rows])
        return Rejections(fenced.astype(np.int64), lambda _: unschedulable("fenced"))
"""
FENCED_OBJECTS = """
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "4", pods: "9"}}}
---
{apiVersion: example.com/v1, kind: Fence, metadata: {name: f}, node: n1}
"""
FENCED_POD = """
---
{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {fenced: ""}}, spec: {containers: [{name: c}]}}
"""


def test_check_tries_pods_of_files(tmp_path: Path) -> None:
    """With the objects of the plugin's kinds, if the plugin skips the pods that the check makes up."""
    file = write(tmp_path / "fenced.py", FENCED)
    code, output = invoke("check", file)
    assert code == 0
    assert "ok: nothing to compare: it has one form only, or skips every generated pod" in output
    assert "note: its pre_filter skips this pod; --cluster FILE" in output
    cluster = write(tmp_path / "cluster.yaml", FENCED_OBJECTS + FENCED_POD)
    code, output = invoke("check", file, "--cluster", cluster)
    assert code == 0, output
    assert f"ok: forms agree on {cluster} (" in output
    assert "note:" not in output
    wrong = write(tmp_path / "wrong.py", FENCED.replace("rows])", "rows]) < 0"))
    code, output = invoke("check", wrong, "--cluster", cluster)
    assert (code, "filter and filter_rows disagree about pod default/p on node n1" in output) == (1, True)


def test_check_needs_a_pod_and_a_node_in_files(tmp_path: Path) -> None:
    """The message names the file."""
    cluster = write(tmp_path / "cluster.yaml", FENCED_OBJECTS)
    code, output = invoke("check", write(tmp_path / "fenced.py", FENCED), "--cluster", cluster)
    assert code == 1
    assert f"wrong: {cluster}: need nodes, and a pod without a node to try" in output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("class P:\n    name = 'P'\n    def filter(self, pod, node): ...\n    def __init__(self, args, handle): ...\n",
         "plugin P: filter must take (state, pod, node)"),
        ("class P:\n    name = 'P'\n    def filter(self, state, pod, node): ...\n",
         "its constructor must take (args, handle)"),
        (("class P:\n    name = 'P'\n    def __init__(self, args, handle): ...\n"
         "    def score(self, state, pod, node): return int(node.labels['size'])\n"),
         'fails for pod plain: running Score plugin "P"'),
        (("from dataclasses import dataclass\n@dataclass\nclass A:\n    zone: str\nclass P:\n    name = 'P'\n"
         "    def __init__(self, args: A, handle): ...\n    def score(self, state, pod, node): return 1\n"),
         "args: object missing required field `zone`"),
        ("class P:\n    name = 'P'\n    def reserve(self, state, pod, node): ...\n", "its constructor must take"),
        (
            ("class P:\n    name = 'P'\n    def __init__(self, args, handle): ...\n"
            "    def reserve(self, state, pod, node): ...\n"),
            "plugin P has reserve but lacks unreserve",
        ),
        (
            ("class P:\n    name = 'P'\n    def __init__(self, args, handle): raise OSError('no disk')\n"
            "    def score(self, state, pod, node): return 1\n"),
            "its constructor raises OSError: no disk",
        ),
        (
            ("class P:\n    name = 'NodeName'\n    def __init__(self, args, handle): ...\n"
            "    def score(self, state, pod, node): return 1\n"),
            "plugin NodeName has the name of an in-tree plugin",
        ),
        ("x = 1\n", "defines no plugin"),
        ("class P:\n", "line 1: expected an indented block"),
        ("import nosuchthing\n", "cannot be loaded: ModuleNotFoundError"),
        ("import beside\n", "to import beside.py from the same folder, make it a package with an __init__.py"),
        ("import sys\nsys.exit(3)\n", "cannot be loaded: SystemExit: 3"),
    ],
)  # fmt: skip
def test_check_says_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    """One line, exit code 1."""
    write(tmp_path / "beside.py", "")
    code, output = invoke("check", write(tmp_path / "p.py", text))
    assert code == 1
    assert words in output


GUARD = """
from kubestow.plugin import CustomObject, PriorityClass, custom_resource, watch
from kubestow.api.storage import PersistentVolumeClaim

@custom_resource("scheduling.x-k8s.io/v1alpha1", "elasticquotas")
class ElasticQuota(CustomObject, frozen=True): ...

class Guard:
    name = "Guard"
    watches = (watch(ElasticQuota, writes=("status", "annotations")), PriorityClass, PersistentVolumeClaim)
    def __init__(self, args, handle): ...
    def filter(self, state, pod, node): ...
"""
GUARD_RULES = [
    {"apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": ["list", "watch"]},
    {"apiGroups": ["scheduling.x-k8s.io"], "resources": ["elasticquotas"], "verbs": ["list", "patch", "watch"]},
    {"apiGroups": ["scheduling.x-k8s.io"], "resources": ["elasticquotas/status"], "verbs": ["patch"]},
]


def test_rbac_prints_what_the_kinds_need(tmp_path: Path) -> None:
    """Kinds that every scheduler watches are not listed; no plugin is created."""
    file = write(tmp_path / "guard.py", GUARD)
    code, output = invoke("rbac", file, "--name", "guard")
    role = yaml.safe_load(output)
    assert (code, role["kind"], role["metadata"]["name"], role["rules"]) == (0, "ClusterRole", "guard", GUARD_RULES)
    assert yaml.safe_load(invoke("rbac", file, "--helm")[1]) == {"extraRules": GUARD_RULES}
    code, output = invoke("rbac", str(EXAMPLES / "01_prefer_zone.py"))
    assert code == 1
    assert "PreferZone: no kind in `watches` needs a rule" in output


def test_list() -> None:
    """The scheduler's own, and those of a file."""
    code, output = invoke("list", "--plugin", str(EXAMPLES / "01_prefer_zone.py"))
    assert code == 0
    lines = {line.split()[0]: line for line in output.splitlines()}
    assert "score" in lines["PreferZone"]
    assert "kubestow" in lines["NodeResourcesFit"]


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_everybody_may_write_is_not_loaded(tmp_path: Path, what: str) -> None:
    """Neither a file nor one in such a folder: anybody could put code there that then runs as the scheduler."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    file = folder / "mine.py"
    lines = ("name = 'Mine'", "def __init__(self, args, handle): ...", "def filter(self, state, pod, node): ...")
    file.write_text("class Mine:\n    " + "\n    ".join(lines) + "\n")
    assert [loaded.name for loaded in load(str(file))] == ["Mine"]
    writable = file if what == "file" else folder
    writable.chmod(0o777)
    with pytest.raises(PluginLoadError, match=f"chmod o-w {writable}"):
        load(str(file))


def test_two_plugins_of_one_name(tmp_path: Path) -> None:
    """The message names both files."""
    one, two = (write(tmp_path / name, (EXAMPLES / "01_prefer_zone.py").read_text()) for name in ("a.py", "b.py"))
    with pytest.raises(PluginLoadError, match=r"b\.py: plugin PreferZone is already loaded from .*a\.py"):
        PluginCollection([one, two])


def test_two_plugins_of_one_name_in_one_file(tmp_path: Path) -> None:
    """The check reports it like the scheduler; the message names both classes."""
    text = f"{(EXAMPLES / '01_prefer_zone.py').read_text()}\n\nclass Other(PreferZone):\n    pass\n"
    code, output = invoke("check", write(tmp_path / "a.py", text))
    assert code == 1
    assert "a.py: PreferZone and Other are both named PreferZone" in output


def test_a_plugin_named_like_one_of_ours(tmp_path: Path) -> None:
    """Messages could not distinguish them."""
    text = (EXAMPLES / "01_prefer_zone.py").read_text().replace('"PreferZone"', '"NodePorts"')
    with pytest.raises(PluginLoadError, match="plugin NodePorts has the name of an in-tree plugin"):
        PluginCollection([write(tmp_path / "a.py", text)])


def test_a_folder_is_a_package(tmp_path: Path) -> None:
    """Its modules may import each other."""
    folder = tmp_path / "mine"
    folder.mkdir()
    write(folder / "zones.py", "ZONE = 'a'\n")
    text = "from .zones import ZONE\n\n" + (EXAMPLES / "01_prefer_zone.py").read_text()
    write(folder / "__init__.py", text)
    (loaded,) = load(str(folder))
    assert loaded.name == "PreferZone"
    assert len(loaded.digest) == 64


def test_installed_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry point makes a plugin known; it is loaded where a configuration names it."""
    write(tmp_path / "zonepack.py", (EXAMPLES / "01_prefer_zone.py").read_text())
    info = tmp_path / "zonepack-1.0.dist-info"
    info.mkdir()
    write(info / "METADATA", "Metadata-Version: 2.1\nName: zonepack\nVersion: 1.0\n")
    write(info / "entry_points.txt", "[kubestow.plugins]\nPreferZone = zonepack:PreferZone\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    collection = PluginCollection()
    assert not collection.loaded
    assert collection["PreferZone"] == {"score"}
    assert [loaded.source for loaded in collection.loaded] == ["package zonepack"]
    assert "Unknown" not in collection
    assert "PreferZone" in invoke("list")[1]


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("filter", "        while True: pass\n"),
        ("filter", "        while True:\n            try: self.wait()\n            except Exception: pass\n"),
        ("score", "        while True: pass\n"),
        ("pre_score", "        while True: pass\n"),
    ],
)
def test_a_check_that_takes_too_long_names_the_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, body: str
) -> None:
    """Of the plugin, with the file and the line, however deep it calls itself and whatever it catches."""
    signature = {"pre_score": "self, pod, view, rows"}.get(method, "self, state, pod, node")
    text = (
        "class P:\n    name = 'P'\n    def __init__(self, args, handle): ...\n"
        "    def wait(self):\n        while True: pass\n"
        f"    def {method}({signature}):\n{body}"
        + ("    def score(self, state, pod, node): return 1\n" if method == "pre_score" else "")
    )
    file = write(tmp_path / "p.py", text)
    monkeypatch.chdir(tmp_path)
    code, output = invoke("check", "p.py" if body.startswith("        while True: pass") else file, "--timeout", "0.2")
    assert code == 1
    assert f"  wrong: takes longer than 0.2 s, in {method} (" in output
    assert re.search(r"\(\S*p\.py:\d+\); --timeout allows more\n$", output)


def test_a_file_that_takes_too_long_to_load_is_reported(tmp_path: Path) -> None:
    """Like a check."""
    file = write(tmp_path / "p.py", "while True: pass\n")
    code, output = invoke("check", file, "--timeout", "0.2")
    said = f"wrong: takes longer than 0.2 s, in <module> ({file}:1); --timeout allows more\n"
    assert (code, output) == (1, said)


def test_a_slow_plugin_is_measured_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cost is reported after two calls for all nodes: one to warm up, and one that is measured."""
    passed = 0.0

    def clock() -> float:
        nonlocal passed
        passed += 0.01
        return passed

    class Slow:
        name = "Slow"
        calls = 0

        def __init__(self, args: object, handle: object) -> None: ...

        def filter(self, state: object, pod: object, node: object) -> None:
            nonlocal passed
            passed += 0.001
            Slow.calls += 1

    monkeypatch.setattr(plugin_check, "time", SimpleNamespace(perf_counter=clock))
    slowest = plugin_check.costs(Loaded("Slow", Slow, "slow.py"), None)[0]
    assert (slowest.plugin, round(slowest.micros)) == ("Slow", 5_010_000)
    assert Slow.calls == 2 * plugin_check.NODES


def test_the_check_under_way_is_shown_on_a_terminal(tmp_path: Path) -> None:
    """On standard error, until it ends."""
    file = write(
        tmp_path / "p.py",
        "class P:\n    name = 'P'\n    def __init__(self, args, handle): ...\n"
        "    def filter(self, state, pod, node): raise OSError('no disk')\n",
    )
    main_end, end = pty.openpty()
    command = [sys.executable, "-m", "kubestow", "plugin", "check", file]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=end, check=False)
    os.close(end)
    shown = os.read(main_end, 10_000).decode()
    os.close(main_end)
    assert done.returncode == 1
    assert "  arguments ...\r\x1b[K  agreement of forms ...\r\x1b[K  unusual objects ...\r\x1b[K" in shown
    assert "..." not in done.stdout.decode()


def test_the_names_of_installed_plugins_are_sources_of_a_collection() -> None:
    """A process that gets the sources creates an equal collection, as simulations do."""
    plugins = PluginCollection()
    assert "NodeResourceTopologyMatch" in plugins
    again = PluginCollection(plugins.sources)
    assert [loaded.name for loaded in again.loaded] == ["NodeResourceTopologyMatch"]
    assert len(again.declared_kinds) == 1
    assert again.declared_kinds == plugins.declared_kinds
