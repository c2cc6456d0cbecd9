"""Benchmark of CEL: evaluation and compilation of device selectors."""

from collections.abc import Iterator
from functools import partial

from bench_rows import Row, micros, seconds_per_call
from kubestow.api import devices as model
from kubestow.api.cel import Device, EvaluationError, Selector

GPU = 'device.attributes["gpu.example.com"]'
SELECTORS = {
    "driver, model and memory": f'device.driver == "gpu.example.com" && {GPU}.model == "a100" && '
    'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("40Gi"))',
    "driver": 'device.driver == "gpu.example.com"',
    "a pattern": f'{GPU}.model.matches("^a[0-9]+$")',
    "an optional attribute": f'{GPU}.?missing.orValue("none") == "none"',
    "a macro over two models": f'["a100", "h100"].exists(model, model == {GPU}.model)',
    "an error": f"{GPU}.missing == 1",
}


def rows(_full: bool) -> Iterator[Row]:
    """Yield the rows of the section."""
    device = make_device()
    for what, source in SELECTORS.items():
        yield micros(f"selector with {what}", seconds_per_call(partial(evaluate, Selector(source), device)))
    first = SELECTORS["driver, model and memory"]
    yield micros("compiling the first of them", seconds_per_call(lambda: Selector(first)), "once for each expression")


def make_device() -> Device:
    attributes = {
        "model": model.DeviceAttribute(string="a100"),
        "version": model.DeviceAttribute(version="1.2.0"),
        "healthy": model.DeviceAttribute(boolean=True),
        "index": model.DeviceAttribute(integer=1),
    }
    capacity = {"memory": model.DeviceCapacity(value="80Gi")}
    return Device("gpu.example.com", model.Device(name="gpu-0", attributes=attributes, capacity=capacity))


def evaluate(selector: Selector, device: Device) -> bool:
    try:
        return selector.matches(device)
    except EvaluationError:
        return False
