"""Metrics of the process: time, memory, files and network, read from /proc. Without /proc they are not served."""

import os
from collections.abc import Callable
from pathlib import Path

from kubestow.telemetry.metrics.instruments import ALPHA, NO_LEVEL, Counter, Gauge, Key
from kubestow.telemetry.metrics.registry import Registry

_START_TIME = "Start time of the process, in seconds since the epoch."
_STAT = {"utime": 11, "stime": 12, "starttime": 19, "vsize": 20, "rss": 21}
"""Positions of the fields of /proc/self/stat, counted after the name of the command."""


def add_process_metrics(registry: Registry, proc: Path = Path("/proc")) -> None:
    """Add the metrics of the process, which read /proc at each scrape."""
    if not (proc / "self/stat").exists():
        return
    reader = _Proc(proc)
    for name, text, read in (
        ("process_virtual_memory_bytes", "Size of virtual memory.", lambda: reader.stat("vsize")),
        ("process_virtual_memory_max_bytes", "Limit of virtual memory.", lambda: reader.limit("Max address space")),
        ("process_resident_memory_bytes", "Size of resident memory.", lambda: reader.stat("rss") * reader.page),
        ("process_start_time_seconds", _START_TIME, reader.start_time),
        ("process_open_fds", "Number of open files.", reader.open_files),
        ("process_max_fds", "Maximum number of open files.", lambda: reader.limit("Max open files")),
    ):
        registry.add(Gauge(name, NO_LEVEL, text)).watch(_source(read))
    for name, text, read in (
        ("process_cpu_seconds_total", "CPU time spent, user and system.", reader.cpu_seconds),
        ("process_network_receive_bytes_total", "Bytes received.", lambda: reader.network("InOctets")),
        ("process_network_transmit_bytes_total", "Bytes sent.", lambda: reader.network("OutOctets")),
    ):
        registry.add(Counter(name, NO_LEVEL, text)).watch(_source(read))


def add_start_time(registry: Registry, proc: Path = Path("/proc")) -> None:
    """Add only the start time of the process."""
    if (proc / "self/stat").exists():
        registry.add(Gauge("process_start_time_seconds", ALPHA, _START_TIME)).watch(_source(_Proc(proc).start_time))


def _source(read: Callable[[], float]) -> Callable[[], dict[Key, float]]:
    return lambda: {(): read()}


class _Proc:
    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._ticks = os.sysconf("SC_CLK_TCK")
        self.page = os.sysconf("SC_PAGE_SIZE")

    def stat(self, field: str) -> float:
        after_name = (self._proc / "self/stat").read_text().rpartition(")")[2]
        return float(after_name.split()[_STAT[field]])

    def cpu_seconds(self) -> float:
        return (self.stat("utime") + self.stat("stime")) / self._ticks

    def start_time(self) -> float:
        booted = next(line for line in (self._proc / "stat").read_text().splitlines() if line.startswith("btime "))
        return float(booted.split()[1]) + self.stat("starttime") / self._ticks

    def open_files(self) -> float:
        return len(list((self._proc / "self/fd").iterdir()))

    def limit(self, name: str) -> float:
        lines = (self._proc / "self/limits").read_text().splitlines()
        soft = next(line for line in lines if line.startswith(name)).removeprefix(name).split()[0]
        return float(2**64 - 1) if soft == "unlimited" else float(soft)

    def network(self, field: str) -> float:
        names, values = (
            line.split()
            for line in (self._proc / "self/net/netstat").read_text().splitlines()
            if line.startswith("IpExt:")
        )
        return float(values[names.index(field)])
