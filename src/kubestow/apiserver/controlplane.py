"""The control plane as one object: store, API server, controllers and simulated kubelets, started and stopped together.

async with ControlPlane(Options(nodes=3)) as cp:
    print(cp.url, cp.kubeconfig_path)
"""

import asyncio
import secrets
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from kubestow.apiserver import bootstrap
from kubestow.apiserver.admission.chain import Admission, AdmissionError
from kubestow.apiserver.auth import certificates, kubeconfig
from kubestow.apiserver.auth.certificates import Certificates
from kubestow.apiserver.auth.escalation import Escalation
from kubestow.apiserver.auth.identities import Identities, TokenFileError
from kubestow.apiserver.auth.impersonation import keeps_header
from kubestow.apiserver.auth.kubeconfig import KubeconfigError
from kubestow.apiserver.auth.policy import Authorizer
from kubestow.apiserver.auth.rbac import Rbac
from kubestow.apiserver.controllers import events, standard
from kubestow.apiserver.controllers.api import Api
from kubestow.apiserver.controllers.pods import Pods
from kubestow.apiserver.controllers.queue import Controller, Controllers
from kubestow.apiserver.controllers.standard import ControllersError
from kubestow.apiserver.custom.serving import CustomKinds
from kubestow.apiserver.driver import Driver
from kubestow.apiserver.files import ForeignLinkError, replace_file, require_own_link, restrict
from kubestow.apiserver.kubelets import description
from kubestow.apiserver.kubelets.description import NodesFileError
from kubestow.apiserver.kubelets.devices import DeviceDriver, Devices, DevicesError
from kubestow.apiserver.kubelets.fleet import Fleet
from kubestow.apiserver.kubelets.scripts import Pace
from kubestow.apiserver.objects.removal import Remover
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.rest.application import Application
from kubestow.apiserver.rest.auditing import AuditLog
from kubestow.apiserver.rest.watching import Watchers
from kubestow.apiserver.store.layout import StorageError
from kubestow.apiserver.store.sqlite import SqliteJournal
from kubestow.apiserver.store.store import DEFAULT_RETAIN, DEFAULT_RETAINED_BYTES, Store
from kubestow.config.features import Features
from kubestow.server.http.limits import Limits
from kubestow.server.http.listening import ListenError, listen
from kubestow.server.http.server import Server
from kubestow.telemetry.metrics.apiserver import ApiServerMetrics

_PROTECTION = "PodGroupProtection"
_STORED = ("objects.db", "objects.db-wal", "objects.db-shm", "objects.mark", "objects.check", "pki", "lost+found")
"""What a data folder contains, and a new volume."""


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of a control plane."""

    bind_address: str = "127.0.0.1"
    port: int = 0
    data_dir: Path | None = None
    """Folder that stores the objects; None keeps them in memory."""
    repair: bool = False
    """Whether a damaged data file is replaced by one with its sound objects; else the server does not start."""
    token: str | None = None
    """The administrator's token; None generates one."""
    token_file: Path | None = None
    kubeconfig: Path | None = None
    """Path of the kubeconfig to write; None: in the data folder, or a temporary one."""
    controllers: bool | str = True
    """Whether controllers run; or the list of those that run, as in kube-controller-manager's --controllers."""
    kubelets: bool = True
    """Whether simulated kubelets run and terminate the pods bound to nodes."""
    nodes: int = 0
    """Number of default nodes; those that do not exist yet are created."""
    nodes_if_none: int = 0
    """Number of default nodes to create if there is no node at all."""
    nodes_file: Path | None = None
    """File of nodes to create: Node manifests, or a description of groups of nodes."""
    devices: str = ""
    """The devices of each node: a number of GPUs, `gpus` or `partitionable-gpus`; or a file of ResourceSlices."""
    pace: Pace = field(default_factory=Pace)
    """The delays of simulated kubelets."""
    retained_changes: int = DEFAULT_RETAIN
    """Number of past changes of each resource at which a watch can start."""
    retained_bytes: int = DEFAULT_RETAINED_BYTES
    """Maximum size of the past changes of all resources: above it, the older half of the largest log is dropped."""
    event_bytes: int = events.DEFAULT_BYTES
    """Maximum size of all events: above it, the oldest are deleted before they expire."""
    max_watches: int = 5_000
    limits: Limits = field(default_factory=Limits)
    """The limits on connections and requests of clients."""
    rbac: bool = False
    """Whether RBAC authorizes requests, instead of the fixed policy."""
    audit_log: Path | None = None
    """Path of the audit log: one line of JSON for each request."""
    features: Features = field(default_factory=Features)
    """Feature gates: GenericWorkload protects pod groups in use, WorkloadWithJob creates pod groups for Jobs."""
    enable_admission_plugins: tuple[str, ...] = ()
    disable_admission_plugins: tuple[str, ...] = ()
    extra_names: tuple[str, ...] = field(default=())
    """Additional names and addresses in the server's certificate."""


class StartError(Exception):
    """The control plane cannot start; the message contains the cause and the remedy."""


class ControlPlane:
    """A control plane; once started, it is reached with `url`, `kubeconfig_path`, `admin_token` and `ca`."""

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.url = ""
        self.admin_token = ""
        self.port = 0
        self.store: Store
        self.application: Application
        self.identities: Identities
        self._certificates: Certificates
        self._temporary: Path | None = None
        self._journal: SqliteJournal | None = None
        self._server: Server | None = None
        self._watchers: Watchers | None = None
        self._audit: AuditLog | None = None
        self._custom_kinds: CustomKinds | None = None
        self._driver: Driver | None = None

    @property
    def ca(self) -> Path:
        """Path of the certificate authority that signed the server's certificate."""
        return self._certificates.ca

    @property
    def kubeconfig_path(self) -> Path:
        """Path of the administrator's kubeconfig."""
        return self.options.kubeconfig or self._certificates.ca.parent / "admin.kubeconfig"

    async def start(self) -> None:
        """Start all parts. Raises StartError if one of them cannot start."""
        try:
            await self._start()
        except (
            StorageError,
            ForeignLinkError,
            KubeconfigError,
            ListenError,
            TokenFileError,
            NodesFileError,
            DevicesError,
            AdmissionError,
            ControllersError,
        ) as error:
            await self.stop()
            raise StartError(str(error)) from error
        except OSError as error:
            await self.stop()
            raise StartError(f"cannot use {error.filename}: {error.strerror}") from error
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        options = self.options
        described = description.default_nodes(options.nodes)
        if options.nodes_file is not None:
            described += description.read(options.nodes_file)
        devices = Devices(options.devices)
        folder = self._folder()
        addresses = options.extra_names
        if options.bind_address not in ("0.0.0.0", "::"):  # noqa: S104
            addresses = (*addresses, options.bind_address)
        self._certificates = certificates.ensure(folder / "pki", addresses)
        if options.kubeconfig is not None:
            await asyncio.to_thread(kubeconfig.require_replaceable, options.kubeconfig, self.ca)
        self.admin_token = options.token or _stored_token(folder / "pki" / "admin.token")
        if options.data_dir is not None:
            self._journal = SqliteJournal(options.data_dir, repairs=options.repair)
        self.store = Store(self._journal, retain=options.retained_changes, retained_bytes=options.retained_bytes)
        self.identities = Identities(self.admin_token, self.store)
        if options.token_file is not None:
            self.identities.add_file(options.token_file)
        self._watchers = Watchers(self.store, max_watches=options.max_watches)
        disabled = options.disable_admission_plugins
        if not standard.is_chosen("node-lifecycle-controller", self._chosen()):
            # No other controller would remove the taint again.
            disabled = (*disabled, "TaintNodesByCondition")
        enabled = options.enable_admission_plugins
        if options.features.generic_workload and _PROTECTION not in disabled:
            enabled = (*enabled, _PROTECTION)
        metrics = ApiServerMetrics(options.features)
        admission = Admission(self.store, enabled, disabled, options.features, metrics)
        if options.audit_log is not None:
            self._audit = AuditLog(options.audit_log)
        authorizer: Authorizer | None = None
        if options.rbac:
            authorizer = rbac = Rbac(self.store)
            admission.guard = Escalation(rbac).check
        self.application = Application(
            self.store, self.identities, self._watchers, admission, self._audit, authorizer, metrics
        )
        if self._audit is not None:
            self.application.meter.watch_audit(self._audit)
        self._custom_kinds = self.application.custom_kinds
        journal = self._journal
        if journal is not None:
            self.application.unhealthy = lambda: journal.failure
            self.application.meter.watch_storage(journal.path)
        writer, remover = self.application.mutations.writer, self.application.mutations.remover
        bootstrap.add_initial_objects(writer)
        if options.rbac:
            bootstrap.add_roles(writer)
        bootstrap.add_nodes(writer, described)
        if not self.store.collection("nodes").objects:
            bootstrap.add_nodes(writer, description.default_nodes(options.nodes_if_none))
        devices.add(writer)
        controllers = Controllers(self.store, self._controllers(writer, remover, devices), metrics.work)
        self._driver = Driver(controllers, self.store.clock)
        listener = listen(options.bind_address, options.port, "--port, 0 for any that is free")
        self._server = Server(self.application, options.limits, kept_headers=keeps_header)
        self.port = self._server.start(listener, self._certificates.server_context())
        host = "127.0.0.1" if options.bind_address in ("0.0.0.0", "::", "") else options.bind_address  # noqa: S104
        bootstrap.advertise(writer, host, self.port)
        self.url = f"https://[{host}]:{self.port}" if ":" in host else f"https://{host}:{self.port}"
        await asyncio.to_thread(kubeconfig.write, self.kubeconfig_path, self.url, self._certificates, self.admin_token)

    def _controllers(self, writer: Writer, remover: Remover, devices: Devices) -> list[Controller]:
        """Return all controllers to run, including the server's own and those of the simulated nodes."""
        pods = Pods(Api(writer, remover))
        authority = self._certificates.ca.read_text(encoding="ascii")
        controllers: list[Controller] = [
            events.Events(self.store, self.options.event_bytes),
            DeviceDriver(pods.api, devices),
            *standard.controllers(pods, authority, self._chosen(), self.options.features),
        ]
        if self.options.kubelets:
            controllers.append(Fleet(pods, self.options.pace))
        return controllers

    def _chosen(self) -> str:
        wanted = self.options.controllers
        return wanted if isinstance(wanted, str) else "*" if wanted else "none"

    def _folder(self) -> Path:
        if self.options.data_dir is not None:
            try:
                self._secure(self.options.data_dir)
            except OSError as error:
                raise StorageError(f"cannot use data folder {self.options.data_dir}: {error.strerror}") from error
            return self.options.data_dir
        if self.options.repair:
            raise StorageError("--repair needs --data-dir: without it there is nothing to repair")
        self._temporary = Path(tempfile.mkdtemp(prefix="kubestow-"))
        return self._temporary

    def _secure(self, folder: Path) -> None:
        """Create the data folder. One that contains nothing else becomes private. Raises OSError, ForeignLinkError."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        given = (self.options.audit_log, self.options.kubeconfig, self.options.token_file)
        own = {*_STORED, *(path.name for path in given if path is not None)}
        if {entry.name for entry in folder.iterdir() if not entry.name.startswith("objects.damaged-")} <= own:
            restrict(folder, 0o700)
        for path in (*(folder / name for name in _STORED), *(folder / "pki").glob("*")):
            require_own_link(path)

    async def stop(self) -> None:
        """Stop all parts. With a data folder, every acknowledged write is on disk afterwards."""
        if self._driver is not None:
            self._driver.close()
        if self._watchers is not None:
            self._watchers.close()
        if self._server is not None:
            await self._server.stop()
        if self._custom_kinds is not None:
            self._custom_kinds.close()
        if self._audit is not None:
            self._audit.close()
        if self._journal is not None:
            await asyncio.to_thread(self._journal.close)
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


def _stored_token(path: Path) -> str:
    """Return the token stored in a file, generated on first use, so that a kubeconfig remains valid after a restart."""
    if path.exists():
        return path.read_text(encoding="ascii").strip()
    token = secrets.token_urlsafe(24)
    replace_file(path, token.encode())
    return token
