"""Expressions for tests of the maximum cost, and functions that repeat an expression up to the limit."""

DOMAIN = 'device.attributes["dra.example.com"]'
CAPACITY = 'device.capacity["dra.example.com"]'
LIMIT = 1_000_000

EXPRESSIONS = (
    "true",
    f'{DOMAIN}.name == "fish"',
    f"{DOMAIN}.name > 0",
    f'{DOMAIN}["name"] < "fish and chips"',
    f"has({DOMAIN}.name)",
    f'{DOMAIN}.?name.orValue("x") == "fish"',
    f'{DOMAIN}[?"name"].hasValue()',
    f'device.driver == {DOMAIN}.name ? {DOMAIN}.a == "x" : {DOMAIN}.b == "y"',
    'device.driver in ["a", "b", "c"]',
    f'"name" in {DOMAIN} || !("other" in {CAPACITY})',
    "device.attributes.exists_one(x, x == 'dra.example.com')",
    f"{DOMAIN}.all(key, key.startsWith('a'))",
    f"{DOMAIN}.exists(key, value, key == 'a' && value == 'b')",
    "device.attributes.all(d, device.attributes[d].exists(n, n.contains('gpu')))",
    f"{DOMAIN}.filter(k, k != 'a').size() == 1",
    f"{DOMAIN}.map(k, k + '-' + device.driver).exists(k, k == 'a')",
    f"{DOMAIN}.transformList(k, v, k).exists(k, k == 'abcdefghijklmnopqrstuvwxyz')",
    f"{DOMAIN}.transformMap(k, v, v == 'a').exists(k, k == 'a')",
    f'cel.bind(dra, {DOMAIN}, dra.name == "x" && dra.other == "y")',
    "cel.bind(l, ['abcdefghijklm', 'n'], l.exists(x, x == 'nnnnnnnnnnnnnnnnnnnnnnnnnnn'))",
    f'{DOMAIN}.services.split(",").size() >= 2',
    f'{DOMAIN}.services.split(",", 3).exists(x, x == "a")',
    f'{DOMAIN}.services.matches("[^a]?sym")',
    f'{DOMAIN}.services.find("[a-z]+") == "abc"',
    f'{DOMAIN}.services.findAll("[a-z]+").size() == 2',
    f'{DOMAIN}.services.lowerAscii() == "abc"',
    f'{DOMAIN}.services.replace("a", "bbb") == "abcdefghijklmnopqrstuvwxyz"',
    f'{DOMAIN}.services.indexOf("a") == 2',
    f'{DOMAIN}.services.substring(1, 3).trim() == "abcdefghijklmnopqrstuvwxyz"',
    '("%s-%d").format([device.driver, 1]) == "a"',
    "device.driver.endsWith('.example.com') && device.driver.size() > 3",
    f'{CAPACITY}.memory.compareTo(quantity("40Gi")) >= 0',
    f'{CAPACITY}.memory == quantity("40Gi")',
    f'quantity({DOMAIN}.text).isGreaterThan(quantity("1"))',
    f'{DOMAIN}.version.isGreaterThan(semver("0.0.1"))',
    'semver("1.0.0") == semver("1.0.0")',
    f"isIP({DOMAIN}.address) && ip({DOMAIN}.address).family() == 4",
    f'cidr("10.0.0.0/8").containsIP({DOMAIN}.address)',
    'cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16")',
    'cidr("10.0.0.0/8").containsIP(ip("10.1.0.1"))',
    'ip.isCanonical("10.0.0.1")',
    'url("https://example.com/abcdefghijklmnop").getHost() == "example.com"',
    'format.dns1123Label().validate("abc").hasValue()',
    "[1, 2, 3].sum() == 6 && [1, 2, 3].isSorted()",
    "[1, 2, 3, 2].indexOf(2) == 1",
    "sets.contains([1, 2, 3], [1, 2]) && sets.equivalent([1], [1, 1])",
    "[1, 2, 3].slice(0, 2).size() == 2",
    "[3, 2, 1].sort() == [1, 2, 3]",
    "[3, 2, 1].sortBy(x, -x) == [1, 2, 3]",
    "[3, 2, 1].distinct().size() == 3 && [1, 2].reverse() == [2, 1]",
    "lists.range(10).all(x, x < 10)",
    "[[1], [2, 3]].flatten().size() == 3",
    "{'a': 'xyz'}.exists(k, v, k == v)",
    "{'a': 1, 'b': 2}['a'] == 1",
    "[1, 2] + [3] == [1, 2, 3]",
    f"[{DOMAIN}.a, {DOMAIN}.b].exists(x, x == 'abcdefghijklmnopqrstuvwxyz')",
    "b'abc' == bytes('abc') && string(b'abc') == 'abc'",
    "timestamp('2023-01-01T00:00:00Z') < timestamp('2024-01-01T00:00:00Z')",
    "duration('1h').getHours() == 1 && int('12') == 12",
    "dyn(device.driver) == 'x'",
    f"string({DOMAIN}.number) == '12'",
    f"{DOMAIN}.names.join(', and ') == 'abcdefghijklmnopqrstuvwxyz'",
)
"""Expressions whose value depends on the device."""

LISTED = (
    f"{DOMAIN}.names.includes('fish')",
    f"{DOMAIN}.names.exists(x, x > 0)",
    f"{DOMAIN}.names.all(x, x.includes('fish'))",
    f"{DOMAIN}.names.all(x, x.isGreaterThan(semver('0.0.1')))",
    f"{DOMAIN}.names.filter(x, x > 0).size() == {DOMAIN}.names.size()",
    f"{DOMAIN}.names[0] == 'abcdefghijklmnopqrstuvwxyz'",
    f"'abcdefghijklmnopqrstuvwxyz' in {DOMAIN}.names",
    f"{DOMAIN}.names == [1, 2, 3]",
    f"sets.contains({DOMAIN}.names, [1, 2, 3])",
    f"{DOMAIN}.names.sum() == 3 && {DOMAIN}.names.isSorted()",
    f"{DOMAIN}.names.max() == 3 || {DOMAIN}.names.indexOf(3) > 0",
    f"{DOMAIN}.names.map(x, x + 1).includes(3)",
    f"{DOMAIN}.names.join('') == 'ab'",
    f"[1, 2, 3].includes({DOMAIN}.name)",
)
"""Expressions for devices whose attributes may be lists."""

ENDLESS = (
    f'{DOMAIN}.map(k, k).join(",") == "x"',
    f'{DOMAIN}.map(k, k).map(k, k).max() == "x"',
    '["a", "b"].max() == "b"',
)
"""Expressions whose maximum cost is unlimited."""


def repeated(expression: str, outer: int, inner: int) -> str:
    """Return an expression that is evaluated `outer` times `inner` times."""
    rounds = [", ".join("0" for _ in range(count)) for count in (outer, inner)]
    return f"[{rounds[0]}].all(o, [{rounds[1]}].all(i, {expression}))"


def at_the_limit(cost: float) -> tuple[int, int]:
    """Return the maximum numbers of outer and inner rounds with which an expression does not exceed the limit."""
    outer = 400
    # An inner loop costs 11 without its rounds, an outer round 3 more.
    inner = int(((LIMIT - 11) / outer - 14) // (cost + 3))
    return outer, inner
