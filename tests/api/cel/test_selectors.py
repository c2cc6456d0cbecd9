"""Device selectors: the variable `device`, and the messages that kube-scheduler reports."""

import pytest

from kubestow.api import devices as model
from kubestow.api.cel import CompileError, Device, EvaluationError, compile_selector

DRIVER = "gpu.example.com"
NOT_A_BOOL = "CEL result of type {} could not be converted to bool"


def device(**changes: object) -> Device:
    """Return a device with an attribute of each kind and two capacities, or with other fields."""
    fields: dict[str, object] = {
        "attributes": {
            "model": model.DeviceAttribute(string="a100"),
            "index": model.DeviceAttribute(integer=3),
            "healthy": model.DeviceAttribute(boolean=True),
            "driverVersion": model.DeviceAttribute(version="1.2.3-rc.1"),
            "pci.example.com/root": model.DeviceAttribute(string="0000:00"),
            "gpu.example.com/qualified": model.DeviceAttribute(integer=0),
        },
        "capacity": {
            "memory": model.DeviceCapacity(value="80Gi"),
            "net.example.com/bandwidth": model.DeviceCapacity(value="100M"),
        },
    }
    return Device(DRIVER, model.Device(name="gpu-0", **{**fields, **changes}))  # type: ignore[arg-type]


def matches(source: str, candidate: Device | None = None) -> bool:
    return compile_selector(source).matches(candidate or device())


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("true", True),
        ("false", False),
        ('device.driver == "gpu.example.com"', True),
        ('device.driver == "other"', False),
        ("device.allowMultipleAllocations", False),
        ('device.attributes["gpu.example.com"].model == "a100"', True),
        ('device.attributes["gpu.example.com"]["model"] == "a100"', True),
        ('device.attributes["gpu.example.com"].model in ["a100", "h100"]', True),
        ('device.attributes["gpu.example.com"].model in ["v100"]', False),
        ('device.attributes["gpu.example.com"].model.startsWith("a")', True),
        ('device.attributes["gpu.example.com"].model.matches("^a[0-9]+$")', True),
        ('device.attributes["gpu.example.com"].index < 4', True),
        ('device.attributes["gpu.example.com"].index + 1 == 4', True),
        ('device.attributes["gpu.example.com"].index == 3.0', True),
        ('device.attributes["gpu.example.com"].healthy', True),
        ('!device.attributes["gpu.example.com"].healthy', False),
        ('device.attributes["gpu.example.com"].qualified == 0', True),
        ('device.attributes["gpu.example.com"].driverVersion.isLessThan(semver("1.2.3"))', True),
        ('device.attributes["gpu.example.com"].driverVersion.major() == 1', True),
        ('device.attributes["pci.example.com"].root == "0000:00"', True),
        ('device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("40Gi"))', True),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) == 0', True),
        ('device.capacity["gpu.example.com"].memory == quantity("80Gi")', True),
        ('device.capacity["net.example.com"].bandwidth.asInteger() == 100000000', True),
        ('"gpu.example.com" in device.attributes', True),
        ('"other.example.com" in device.attributes', False),
        ('"model" in device.attributes["gpu.example.com"]', True),
        ('"model" in device.attributes["other.example.com"]', False),
        ('device.attributes["other.example.com"].size() == 0', True),
        ('has(device.attributes["gpu.example.com"].model)', True),
        ('has(device.attributes["other.example.com"].model)', False),
        ("has(device.driver)", True),
        ('device.attributes["gpu.example.com"].?missing.orValue(1) == 1', True),
        ('device.attributes["gpu.example.com"][?"index"].orValue(1) == 3', True),
        ('device.attributes[?"other.example.com"].hasValue()', True),
        ('cel.bind(gpu, device.attributes["gpu.example.com"], gpu.healthy && gpu.index > 2)', True),
        ('device.attributes.exists_one(domain, domain == "gpu.example.com")', True),
        ('device.attributes["gpu.example.com"].exists(name, name == "model")', True),
        ("device.capacity.all(domain, capacities, capacities.size() == 1)", True),
        ('["a100", "h100"].exists(m, m == device.attributes["gpu.example.com"].model)', True),
        ('device.attributes["gpu.example.com"].missing == 1 || true', True),
        ('device.attributes["gpu.example.com"].model == "a100" || device.attributes["x"].y == 1', True),
        ("size(device.attributes) == 2 && device.capacity.size() == 2", True),
        ('dyn(device).driver == "gpu.example.com"', True),
        ("[device].exists(d, d.driver.size() == 15)", True),
        ('device.attributes == {"x": {}} || true', True),
    ],
)
def test_fields_of_the_variable(source: str, answer: bool) -> None:
    """Driver, attributes and capacity by domain and name; an unknown domain is empty."""
    assert matches(source) is answer


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('device.attributes["gpu.example.com"].missing == 1', "no such key: missing"),
        ('device.attributes["gpu.example.com"].missing', "no such key: missing"),
        ('device.attributes["other.example.com"]["missing"].isGreaterThan(quantity("0"))', "no such key: missing"),
        ('device.capacity["gpu.example.com"].missing.isGreaterThan(quantity("0"))', "no such key: missing"),
        ('device.attributes["gpu.example.com"].model > 1', "no such overload"),
        (
            'device.attributes["gpu.example.com"].index == 3 && device.attributes["gpu.example.com"].index',
            "no such overload",
        ),
        (
            'device.attributes["gpu.example.com"].model.isGreaterThan(semver("1.0.0"))',
            "no such overload: isGreaterThan(string, kubernetes.Semver)",
        ),
        ('device.attributes["gpu.example.com"].driverVersion == "1.2.3"', "no such overload"),
        (
            'device.attributes["gpu.example.com"].model',
            f"{NOT_A_BOOL.format('string')}: unsupported native conversion from string to 'bool'",
        ),
        (
            'device.attributes["gpu.example.com"].index',
            f"{NOT_A_BOOL.format('int')}: unsupported type conversion from 'int' to bool",
        ),
        (
            'device.attributes["gpu.example.com"].driverVersion',
            f"{NOT_A_BOOL.format('kubernetes.Semver')}: type conversion error from 'Semver' to 'bool'",
        ),
        (
            "[1,2,3,4,5,6,7,8,9,10].all(a, lists.range(1000).all(b, lists.range(1000).all(c, true)))",
            "operation cancelled: actual cost limit exceeded",
        ),
    ],
)
def test_errors_of_an_evaluation(source: str, message: str) -> None:
    """Messages are those that kube-scheduler includes in its own."""
    with pytest.raises(EvaluationError) as raised:
        matches(source)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1", "must evaluate to bool or the unknown type, not int"),
        ("'a'", "must evaluate to bool or the unknown type, not string"),
        ("null", "must evaluate to bool or the unknown type, not null_type"),
        ("dyn(true)", "must evaluate to bool or the unknown type, not dyn"),
        ("duration('1s')", "must evaluate to bool or the unknown type, not google.protobuf.Duration"),
        (
            "device.attributes",
            "must evaluate to bool or the unknown type, not map(string, map(string, google.protobuf.Any))",
        ),
        ("device.capacity['a'].b", "must evaluate to bool or the unknown type, not kubernetes.Quantity"),
        ("device.nope", "compilation failed: ERROR: <input>:1:7: undefined field 'nope'"),
        (
            "devices.driver",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'devices' (in container '')",
        ),
        ("device.driver == 1", "found no matching overload for '_==_' applied to '(string, int)'"),
        (
            "device.attributes['a'].ids.exists(id, id == 1)",
            "expression of type 'any' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("device.capacity['a'].b > 1", "found no matching overload for '_>_' applied to '(kubernetes.Quantity, int)'"),
        ("device.attributes[1].a", "found no matching overload for '_[_]' applied to"),
        ("?!", "compilation failed: ERROR: <input>:1:1: Syntax error: mismatched input '?'"),
        ("true || bool('x')", "program instantiation failed: type conversion error from 'string' to 'bool'"),
        ("int(string(1.5)) == 1", "program instantiation failed: type conversion error from 'string' to 'int'"),
        ("uint(-1) == 1u", "program instantiation failed: unsigned integer overflow"),
    ],
)
def test_an_expression_that_is_not_a_selector(source: str, message: str) -> None:
    """Its type must be bool, or that of an attribute, which may be a bool."""
    with pytest.raises(CompileError) as raised:
        compile_selector(source)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ('device.attributes["gpu.example.com"].model.includes("a100")', True),
        ('device.attributes["gpu.example.com"].driverVersion.includes("a100")', False),
        ("[1, 2, 3].includes(2)", True),
        ("[1, 2, 3].includes(4)", False),
        ("lists.range(48).includes(47)", True),
        ("dyn(true)", True),
        ('["a100"].exists(one, device.attributes["gpu.example.com"].model.includes(one))', True),
    ],
)
def test_attributes_that_may_be_lists(source: str, answer: bool) -> None:
    """Expressions that need the gate DRAListTypeAttributes do not compile without it."""
    assert compile_selector(source, lists=True).matches(device()) is answer
    with pytest.raises(CompileError, match=r"undeclared reference to 'includes'|must evaluate to bool"):
        compile_selector(source)


LISTED = {
    "roots": model.DeviceAttribute(strings=("pci0", "pci1")),
    "lanes": model.DeviceAttribute(ints=(4, 8)),
    "modes": model.DeviceAttribute(bools=(True, False)),
    "firmware": model.DeviceAttribute(versions=("1.0.0", "2.1.0")),
    "none": model.DeviceAttribute(ints=()),
}


@pytest.mark.parametrize(
    "source",
    [
        'of.roots.includes("pci1") && !of.roots.includes("pci2")',
        '"pci0" in of.roots && of.roots[1] == "pci1"',
        "of.lanes.exists(lanes, lanes > 4) && !of.lanes.all(lanes, lanes > 4)",
        "of.modes == [true, false]",
        'of.firmware.includes(semver("2.1.0")) && of.firmware.all(one, one.isLessThan(semver("3.0.0")))',
        "of.roots.size() == 2 && of.none.size() == 0",
    ],
)
def test_attributes_that_are_lists(source: str) -> None:
    """The elements have the types of single attributes."""
    bound = f'cel.bind(of, device.attributes["{DRIVER}"], {source})'
    listed = Device(DRIVER, model.Device(attributes=LISTED), lists=True)
    assert compile_selector(bound, lists=True).matches(listed)


def test_invalid_attributes_and_lists_without_the_gate() -> None:
    """They are reported, so that no pod is scheduled by mistake."""
    with pytest.raises(EvaluationError, match="attribute lanes: unsupported attribute value"):
        Device(DRIVER, model.Device(attributes={"lanes": LISTED["lanes"]}))
    with pytest.raises(EvaluationError, match="attribute v: parse semantic version"):
        Device(DRIVER, model.Device(attributes={"v": model.DeviceAttribute(versions=("1.0.0", "1"))}), lists=True)


def test_a_list_that_is_too_long_for_includes() -> None:
    """It has more values than the maximum number of attributes of a device."""
    with pytest.raises(EvaluationError, match="'includes' function cannot be applied to lists longer than 48 values"):
        compile_selector("lists.range(100).includes(99)", lists=True).matches(device())


def test_without_shared_devices_the_field_is_undeclared() -> None:
    """It is declared with the gate DRAConsumableCapacity."""
    with pytest.raises(CompileError, match="undefined field 'allowMultipleAllocations'"):
        compile_selector("device.allowMultipleAllocations", shares=False)


def test_shared_devices_are_marked() -> None:
    """The field is set for a device that may be allocated several times."""
    assert matches("device.allowMultipleAllocations == true", device(allowMultipleAllocations=True)) is True


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        (
            model.DeviceAttribute(version="1.2"),
            "attribute v: parse semantic version: No Major.Minor.Patch elements found",
        ),
        (model.DeviceAttribute(), "attribute v: unsupported attribute value"),
    ],
)
def test_attributes_without_valid_value(attribute: model.DeviceAttribute, message: str) -> None:
    """The device cannot be converted; the error names the attribute."""
    with pytest.raises(EvaluationError) as raised:
        device(attributes={"v": attribute})
    assert str(raised.value) == message


def test_a_capacity_without_valid_value() -> None:
    """The device cannot be converted; the error names the capacity."""
    with pytest.raises(EvaluationError, match="capacity memory: quantity 'much'"):
        device(capacity={"memory": model.DeviceCapacity(value="much")})


def test_an_expression_is_compiled_once() -> None:
    """Equal texts return the same selector; one that does not compile is compiled again."""
    source = 'device.driver == "once"'
    assert compile_selector(source) is compile_selector(source)
    assert compile_selector(source).source == source


def test_evaluating_changes_nothing() -> None:
    """Repeated evaluations return the same result."""
    candidate = device()
    before = repr(candidate.fields)
    for source in (
        'device.attributes["new.example.com"].size() == 0',
        'device.attributes["gpu.example.com"].map(k, k).sort().reverse().size() == 5',
        "device.capacity.transformMap(k, v, v.transformMap(n, q, q.add(1))).size() == 2",
    ):
        assert [matches(source, candidate) for _ in range(3)] == [True] * 3
    assert repr(candidate.fields) == before
