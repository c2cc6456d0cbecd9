"""Loading of plugins from a Python file, an importable module, or an installed package.

A plugin is a class with a `name` and a method of an extension point. A file or module may define several. A package
declares its plugins as entry points in the group `kubestow.plugins`, named like the plugins; these are read only when
a configuration names a plugin that is neither in-tree nor loaded, so that they cost nothing if unused.
"""

import importlib
import importlib.util
import inspect
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from kubestow.config.plugin_points import IN_TREE
from kubestow.scheduler.framework.caller import place_of
from kubestow.scheduler.framework.contract import CONTRACT
from kubestow.scheduler.framework.declarations import watches_of
from kubestow.scheduler.framework.registry import Registry, RegistryError, check_class, misspelt_methods, points_of
from kubestow.scheduler.framework.results import with_place

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

ENTRY_POINTS = "kubestow.plugins"
_PREFIX = "kubestow_plugin_"


class PluginLoadError(ValueError):
    """A plugin cannot be loaded; the message names its source."""


class Loaded(msgspec.Struct, frozen=True):
    """A plugin and its source."""

    name: str
    plugin: type
    source: str
    """The file, module or package of the plugin."""
    digest: str = ""
    """The SHA-256 of the file; empty for a module or package."""


class PluginCollection(Mapping[str, frozenset[str]]):
    """Maps the name of each in-tree, loaded and installed plugin to its extension points."""

    def __init__(self, sources: Iterable[str] = ()) -> None:
        self.created_at = time.time()
        """The time of construction, before any source was read."""
        self.sources = tuple(sources)
        """Files, modules, and names of installed plugins, which are enough to create an equal collection."""
        self._loaded: dict[str, Loaded] = {}
        for source in self.sources:
            for loaded in load(source):
                self._add(loaded)

    def _add(self, loaded: Loaded) -> None:
        existing = self._loaded.get(loaded.name)
        if existing is not None:
            raise PluginLoadError(f"{loaded.source}: plugin {loaded.name} is already loaded from {existing.source}")
        self._loaded[loaded.name] = loaded

    def __getitem__(self, name: str) -> frozenset[str]:
        if name in IN_TREE:
            return IN_TREE[name]
        if name not in self._loaded:
            self._add(_installed(name))
            self.sources += (name,)
        return points_of(self._loaded[name].plugin)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and bool(self[name] is not None)
        except KeyError:
            return False

    def __iter__(self) -> Iterator[str]:
        yield from IN_TREE
        yield from self._loaded

    def __len__(self) -> int:
        return len(IN_TREE) + len(self._loaded)

    @property
    def loaded(self) -> tuple[Loaded, ...]:
        """The plugins that are not in-tree."""
        return tuple(self._loaded.values())

    @property
    def files(self) -> list[Path]:
        """The sources that are files or folders, not importable modules."""
        return [Path(source) for source in self.sources if _is_file(source)]

    def plugin(self, name: str) -> type | None:
        """Return the class of a loaded plugin; None for any other."""
        found = self._loaded.get(name)
        return None if found is None else found.plugin

    @property
    def declared_kinds(self) -> tuple[type, ...]:
        """The kinds that the loaded plugins watch."""
        return tuple(dict.fromkeys(one.kind for loaded in self.loaded for one in watches_of(loaded.plugin)))

    def register(self, registry: Registry) -> Registry:
        """Register the loaded plugins."""
        for loaded in self._loaded.values():
            registry.register(loaded.name, loaded.plugin)
        return registry


def load(source: str) -> list[Loaded]:
    """Load the plugins of a file, of the folder of a package, or of a module, or an installed plugin, by name.

    Raises PluginLoadError.
    """
    if source.isidentifier() and not _is_file(source) and source in _entry_points().names:
        return [_installed(source)]
    try:
        module, digest = _from_file(Path(source)) if _is_file(source) else (importlib.import_module(source), "")
    except PluginLoadError:
        raise
    except SyntaxError as error:
        raise PluginLoadError(f"{source}: line {error.lineno}: {error.msg}") from error
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        problem = with_place(f"{type(error).__name__}: {error}", place_of(error))
        if isinstance(error, ModuleNotFoundError) and Path(source).with_name(f"{error.name}.py").is_file():
            problem += f"; to import {error.name}.py from the same folder, make it a package with an __init__.py"
        raise PluginLoadError(f"{source}: cannot be loaded: {problem}") from error
    found = [_checked(plugin, source, digest) for plugin in _plugins_in(module)]
    classes: dict[str, str] = {}
    for loaded in found:
        own = loaded.plugin.__name__
        other = classes.setdefault(loaded.name, own)
        if other != own:
            raise PluginLoadError(f"{source}: {other} and {own} are both named {loaded.name}")
    if not found:
        raise PluginLoadError(
            f"{source}: defines no plugin: a class with a `name` and a method of an extension point, such as filter"
        )
    return found


def forget_modules(used: Iterable[PluginCollection]) -> None:
    """Remove the modules of plugin files from sys.modules, except those of the collections in use."""
    kept = {loaded.plugin.__module__.partition(".")[0] for collection in used for loaded in collection.loaded}
    for name in [name for name in sys.modules if name.startswith(_PREFIX) and name.partition(".")[0] not in kept]:
        del sys.modules[name]


def sources_of(path: Path) -> list[Path]:
    """Return the files of a plugin: the file itself, or the modules of a folder."""
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def installed() -> list[Loaded]:
    """Load all plugins of installed packages. Raises PluginLoadError."""
    return [_installed(name) for name in _entry_points().names]


def _installed(name: str) -> Loaded:
    """Load a plugin of an installed package. Raises KeyError if no package has it, and PluginLoadError."""
    entry = _entry_points()[name]
    package = entry.dist.name if entry.dist is not None else entry.module
    try:
        plugin = entry.load()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise PluginLoadError(f"package {package}: plugin {name}: {type(error).__name__}: {error}") from error
    if getattr(plugin, "name", None) != name:
        raise PluginLoadError(f"package {package}: entry point {name} is plugin {getattr(plugin, 'name', None)!r}")
    return _checked(plugin, f"package {package}", "")


def _entry_points() -> "EntryPoints":
    # Imported here because only plugins of packages need its many dependencies.
    from importlib.metadata import entry_points

    return entry_points(group=ENTRY_POINTS)


def _is_file(source: str) -> bool:
    path = Path(source)
    return path.suffix == ".py" or "/" in source or path.exists()


def _from_file(path: Path) -> tuple[ModuleType, str]:
    file = path / "__init__.py" if path.is_dir() else path
    try:
        texts = {source: source.read_bytes() for source in (file, *sources_of(path))}
    except OSError as error:
        reason = f"{error.strerror}: {file.name}" if path.is_dir() else error.strerror
        raise PluginLoadError(f"{path}: cannot be read: {reason}") from None
    _check_permissions(path, texts)
    # Imported here because it takes time and most users have no plugin files.
    import hashlib

    digest = hashlib.sha256(b"".join(texts.values())).hexdigest()
    # Each version has a separate name, so that one under test does not replace the one in use.
    name = f"{_PREFIX}{path.stem}_{digest[:12]}"
    if name in sys.modules:
        return sys.modules[name], digest
    folders = [str(path)] if path.is_dir() else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
    if spec is None or spec.loader is None:
        raise PluginLoadError(f"{path}: is not a Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        # Not with its loader, which ignores an edit within the same second.
        exec(compile(texts[file], file, "exec"), vars(module))  # noqa: S102 - the purpose of a plugin file
    except BaseException:
        del sys.modules[name]
        raise
    return module, digest


def _check_permissions(path: Path, sources: Iterable[Path]) -> None:
    """Raise PluginLoadError for a file that every user of the machine can modify or replace."""
    for file in sources:
        if file.stat().st_mode & stat.S_IWOTH:
            raise PluginLoadError(f"{path}: {file} is writable by all users; run `chmod o-w {file}` to load it")
        mode = file.resolve().parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            folder = file.resolve().parent
            raise PluginLoadError(f"{path}: {folder} is writable by all users; run `chmod o-w {folder}` to load it")


def _plugins_in(module: ModuleType) -> Iterator[Any]:
    """Yield the public plugin classes that the module defines."""
    for name, member in vars(module).items():
        is_own = inspect.isclass(member) and member.__module__.startswith(module.__name__)
        if is_own and not name.startswith("_") and _is_plugin(member):
            yield member


def _is_plugin(member: Any) -> bool:
    """Return whether a class has a name and any method of the contract; `check_class` validates the combination."""
    has_name = isinstance(getattr(member, "name", None), str)
    if not has_name:
        return False
    return any(hasattr(member, method) for method in (*CONTRACT, "filter", "score")) or any(misspelt_methods(member))


def _checked(plugin: Any, source: str, digest: str) -> Loaded:
    if plugin.name in IN_TREE:
        raise PluginLoadError(f"{source}: plugin {plugin.name} has the name of an in-tree plugin")
    try:
        check_class(plugin)
    except RegistryError as error:
        raise PluginLoadError(f"{source}: {error}") from None
    return Loaded(plugin.name, plugin, source, digest)
