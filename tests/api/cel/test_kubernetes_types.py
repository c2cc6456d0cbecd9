"""Kubernetes' own types: quantities, versions, addresses, networks, URLs and named formats."""

import pytest

from support.cel.expressions import evaluate, failure


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("isQuantity('1.3Gi')", True),
        ("isQuantity('1.3GiB')", False),
        ("isQuantity('')", False),
        ("quantity('1Ki') == quantity('1024')", True),
        ("quantity('50k').asInteger()", 50_000),
        ("quantity('40Gi').asInteger()", 40 * 2**30),
        ("quantity('50k').isInteger()", True),
        ("quantity('1.5').isInteger()", False),
        ("quantity('1.0').isInteger()", False),
        ("quantity('1000m').isInteger()", False),
        ("quantity('9999999999999999999999').isInteger()", False),
        ("quantity('1.5').asApproximateFloat()", 1.5),
        ("quantity('1Gi').isGreaterThan(quantity('1G'))", True),
        ("quantity('1G').isLessThan(quantity('1Gi'))", True),
        ("quantity('1').compareTo(quantity('2'))", -1),
        ("quantity('2').compareTo(quantity('2000m'))", 0),
        ("quantity('3').compareTo(quantity('2'))", 1),
        ("quantity('1').add(quantity('500m')) == quantity('1.5')", True),
        ("quantity('1').add(2) == quantity('3')", True),
        ("quantity('1').sub(quantity('500m')) == quantity('0.5')", True),
        ("quantity('1').sub(2) == quantity('-1')", True),
        ("quantity('1').add(2).asInteger()", 3),
        ("quantity('9223372036854775807').add(1).isInteger()", False),
        ("sign(quantity('-1'))", -1),
        ("sign(quantity('0'))", 0),
        ("sign(quantity('5m'))", 1),
        ("quantity('1e3').asInteger()", 1000),
        ("string(dyn(1)) + string(type(quantity('1')) == type(quantity('2')))", "1true"),
    ],
)
def test_quantities(source: str, value: object) -> None:
    """Amounts are exact, and an integer only if Kubernetes could return an int64."""
    assert evaluate(source) == value


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "quantity('x')",
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ("quantity('1Gx')", "quantities must match the regular expression"),
        ("quantity('1iG')", "unable to parse quantity's suffix"),
        ("quantity('1.2.3')", "quantities must match the regular expression"),
        ("quantity('--1')", "unable to parse quantity's suffix"),
        ("quantity(x)", "unable to parse numeric part of quantity"),
        ("quantity('1.5').asInteger()", "cannot convert value to integer"),
        ("[?dyn(quantity('1500'))]", "cannot initialize optional list element from non-optional value 1500"),
        ("dyn('a').isGreaterThan(quantity('1'))", "no such overload: isGreaterThan(string, kubernetes.Quantity)"),
        (
            "dyn(quantity('1')).isGreaterThan(dyn(semver('1.0.0')))",
            "no such overload: isGreaterThan(kubernetes.Quantity, kub",
        ),
    ],
)
def test_invalid_quantities(source: str, message: str) -> None:
    """Messages are those of Kubernetes."""
    assert message in failure(source, x="0" * 5_000 + "!")


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("isSemver('1.2.3')", True),
        ("isSemver('v1.2.3')", False),
        ("isSemver('v1.2.3', true)", True),
        ("isSemver('1.2', true)", True),
        ("isSemver('1.2')", False),
        ("isSemver('01.2.3')", False),
        ("isSemver('01.2.3', true)", True),
        ("isSemver('1.2.3-alpha.1+build.5')", True),
        ("isSemver('1.2.3-')", False),
        ("isSemver('1.2.3-01')", False),
        ("isSemver('1.2.3+')", False),
        ("isSemver('1.2.99999999999999999999')", False),
        ("isSemver('1.2-alpha', true)", False),
        ("semver('1.2.3').major()", 1),
        ("semver('1.2.3').minor()", 2),
        ("semver('1.2.3').patch()", 3),
        ("semver('v01.2', true) == semver('1.2.0')", True),
        ("semver('000.1.2', true) == semver('0.1.2')", True),
        ("semver('1.2.3').compareTo(semver('1.2.4'))", -1),
        ("semver('1.10.0').isGreaterThan(semver('1.9.0'))", True),
        ("semver('1.0.0-alpha').isLessThan(semver('1.0.0'))", True),
        ("semver('1.0.0-alpha').isLessThan(semver('1.0.0-alpha.1'))", True),
        ("semver('1.0.0-2').isLessThan(semver('1.0.0-10'))", True),
        ("semver('1.0.0-10').isLessThan(semver('1.0.0-a'))", True),
        ("semver('1.0.0+a') == semver('1.0.0+b')", True),
        ("semver('1.0.0') in [semver('1.0.0+x')]", True),
    ],
)
def test_versions(source: str, value: object) -> None:
    """The order is that of semver 2.0; build metadata is ignored."""
    assert evaluate(source) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Version string empty"),
        ("1.2", "No Major.Minor.Patch elements found"),
        ("a.2.3", 'Invalid character(s) found in major number "a"'),
        ("1.02.3", 'Minor number must not contain leading zeroes "02"'),
        ("1.2.", 'strconv.ParseUint: parsing "": invalid syntax'),
        ("1.2.x", 'Invalid character(s) found in patch number "x"'),
        ("1.2.3-", "Prerelease is empty"),
        ("1.2.3-é", 'Invalid character(s) found in prerelease "é"'),
        ("1.2.3-01", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("1.2.3+", "Build meta data is empty"),
        ("1.2.3+é", 'Invalid character(s) found in build meta data "é"'),
        ("1.2.99999999999999999999", 'strconv.ParseUint: parsing "99999999999999999999": value out of range'),
    ],
)
def test_invalid_versions(text: str, message: str) -> None:
    """Messages are those of the library that Kubernetes uses."""
    assert failure("semver(x)", x=text) == message


def test_a_short_version_has_no_prerelease() -> None:
    """Also if it is normalized."""
    assert failure("semver('1.2-a', true)") == "short version cannot contain PreRelease/Build meta data"


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("isIP('127.0.0.1')", True),
        ("isIP('::1')", True),
        ("isIP('127.0.0.256')", False),
        ("isIP('127.0.0.01')", False),
        ("isIP('::ffff:1.2.3.4')", False),
        ("isIP('fe80::1%eth0')", False),
        ("ip.isCanonical('::1')", True),
        ("ip.isCanonical('0:0::1')", False),
        ("ip.isCanonical('2001:DB8::1')", False),
        ("ip('10.0.0.1').family()", 4),
        ("ip('::1').family()", 6),
        ("ip('0.0.0.0').isUnspecified()", True),
        ("ip('127.0.0.1').isLoopback()", True),
        ("ip('224.0.0.5').isLinkLocalMulticast()", True),
        ("ip('224.1.0.5').isLinkLocalMulticast()", False),
        ("ip('ff02::1').isLinkLocalMulticast()", True),
        ("ip('169.254.1.1').isLinkLocalUnicast()", True),
        ("ip('10.0.0.1').isGlobalUnicast()", True),
        ("ip('255.255.255.255').isGlobalUnicast()", False),
        ("ip('ff02::1').isGlobalUnicast()", False),
        ("string(ip('0:0::1'))", "::1"),
        ("ip('::1') == ip('0:0::1')", True),
        ("isCIDR('10.0.0.0/8')", True),
        ("isCIDR('10.0.0.0')", False),
        ("isCIDR('10.0.0.0/08')", False),
        ("isCIDR('10.0.0.0/33')", False),
        ("isCIDR('10.0.0.0/255.0.0.0')", False),
        ("isCIDR('fe80::%a/64')", False),
        ("isCIDR('::ffff:1.2.3.4/100')", False),
        ("cidr('10.0.0.0/8').containsIP('10.1.2.3')", True),
        ("cidr('10.0.0.0/8').containsIP(ip('11.1.2.3'))", False),
        ("cidr('10.0.0.0/8').containsIP('::1')", False),
        ("cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", True),
        ("cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))", False),
        ("cidr('10.0.0.0/8').containsCIDR('::/0')", False),
        ("cidr('10.1.2.3/8').ip() == ip('10.1.2.3')", True),
        ("cidr('10.1.2.3/8').prefixLength()", 8),
        ("cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')", True),
        ("cidr('10.1.2.3/8') == cidr('10.0.0.0/8')", False),
        ("string(cidr('10.1.2.3/8'))", "10.1.2.3/8"),
    ],
)
def test_addresses_and_networks(source: str, value: object) -> None:
    """Neither zones nor IPv4-mapped IPv6 addresses are allowed."""
    assert evaluate(source) == value


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("ip('x')", 'IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to parse IP'),
        ("ip('fe80::1%a')", 'IP address "fe80::1%a" with zone value is not allowed'),
        ("ip('::ffff:1.2.3.4')", 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'),
        ("ip('%a')", 'ParseAddr("%a"): missing IPv6 address'),
        ("ip('1.2.3')", 'ParseAddr("1.2.3"): IPv4 address too short'),
        ("ip('1.2.3.4.5')", 'ParseAddr("1.2.3.4.5"): IPv4 address too long'),
        ("ip('1.2..4')", 'ParseAddr("1.2..4"): IPv4 field must have at least one digit (at ".4")'),
        ("ip('1.2.3.')", 'ParseAddr("1.2.3."): IPv4 field must have at least one digit (at ".")'),
        ("ip('1.2.3.256')", 'ParseAddr("1.2.3.256"): IPv4 field has value >255'),
        ("ip('1.2.3.04')", 'ParseAddr("1.2.3.04"): IPv4 field has octet with leading zero'),
        ("ip('example.com')", 'ParseAddr("example.com"): unexpected character (at "example.com")'),
        ("cidr('x')", "network address parse error during conversion from string: "),
        ("cidr('10.0.0.1')", """netip.ParsePrefix("10.0.0.1"): no '/'"""),
        ("cidr('10.0.0/8')", 'netip.ParsePrefix("10.0.0/8"): ParseAddr("10.0.0"): IPv4 address too short'),
        ("cidr('10.0.0.0/08')", 'netip.ParsePrefix("10.0.0.0/08"): bad bits after slash: "08"'),
        ("cidr('10.0.0.0/33')", 'netip.ParsePrefix("10.0.0.0/33"): prefix length out of range'),
        ("cidr('fe80::1%a/8')", 'netip.ParsePrefix("fe80::1%a/8"): IPv6 zones cannot be present in a prefix'),
        ("cidr('::ffff:1.2.3.4/100')", 'IPv4-mapped IPv6 address "::ffff:1.2.3.4/100" is not allowed'),
        ("cidr('10.0.0.0/8').containsIP('x')", 'IP Address "x" parse error'),
    ],
)
def test_invalid_addresses(source: str, message: str) -> None:
    """The message quotes the argument."""
    assert message in failure(source)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("isURL('https://example.com:8080/path?a=1#x')", True),
        ("isURL('/path')", True),
        ("isURL('path')", False),
        ("isURL('')", False),
        ("isURL('https:opaque')", True),
        ("isURL('fe80::1')", True),
        ("isURL('12:34')", False),
        ("isURL('://x')", False),
        ("isURL('http://a b/')", False),
        ("isURL('http://a/%zz')", False),
        ("isURL('http://[::1/')", False),
        ("isURL('http://a:b/')", False),
        ("isURL('http://a\\n/')", False),
        ("isURL('http://us er@a/')", False),
        ("isURL('../relative')", False),
        ("url('HTTPS://u:p@example.com:80/p').getScheme()", "https"),
        ("url('https://u:p@example.com:80/p').getHost()", "example.com:80"),
        ("url('https://example.com:80/p').getHostname()", "example.com"),
        ("url('https://example.com:80/p').getPort()", "80"),
        ("url('https://example.com/p').getPort()", ""),
        ("url('https://[::1]:80/p').getHostname()", "::1"),
        ("url('https://[::1]:80/p').getPort()", "80"),
        ("url('https://[::1]/p').getHostname()", "::1"),
        ("url('https://a/with space/é').getEscapedPath()", "/with%20space/%C3%A9"),
        ("url('https://a/with%20space').getEscapedPath()", "/with%20space"),
        ("url('https://a').getEscapedPath()", ""),
        ("url('https://a/?k=1&k=2&e=%20x+y&bad=%zz&f').getQuery()", {"k": ["1", "2"], "e": [" x y"], "f": [""]}),
        ("url('https://a/b') == url('https://a/b')", True),
        ("url('/a?b#c').getHost()", ""),
        ("url('mailto:a@b?x=1').getQuery()", {"x": ["1"]}),
        ("url('mailto:a@b').getEscapedPath()", ""),
        ("url('mailto:a') == url('mailto:b')", False),
        ("url('https://a/?') == url('https://a/')", False),
        ("url('https://u@a/') == url('https://a/')", False),
    ],
)
def test_urls(source: str, value: object) -> None:
    """A URL is absolute, or a path from the root."""
    assert evaluate(source) == value


def test_an_invalid_url() -> None:
    """The message quotes the argument and gives the reason."""
    prefix = "URL parse error during conversion from string: parse "
    assert failure("url('x')") == prefix + '"x": invalid URI for request'
    assert failure("url('http://a:b/')") == prefix + '"http://a:b/": invalid port ":b" after host'


@pytest.mark.parametrize(
    ("format_", "good", "bad"),
    [
        ("dns1123Label", ["my-name", "123"], ["My", "-a", "a" * 64, "a.b", ""]),
        ("dns1123Subdomain", ["a.b-c", "a" * 253], ["a..b", "A", "a" * 254]),
        ("dns1035Label", ["abc-123"], ["1a", "a" * 64]),
        ("qualifiedName", ["a/B_c", "MyName"], ["a/b/c", "/b", "a/", "A!/b", "b" * 64]),
        ("dns1123LabelPrefix", ["my-", "my"], ["-"]),
        ("dns1123SubdomainPrefix", ["a.b-"], ["a."]),
        ("dns1035LabelPrefix", ["a-"], ["1-"]),
        ("labelValue", ["", "MyValue", "my_value"], ["-a", "a" * 64]),
        ("uri", ["https://a/b"], ["x"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000", "123E4567e89b12d3a456426614174000"], ["x"]),
        ("byte", ["aGVsbG8="], ["aGVsbG8", "!"]),
        ("date", ["2023-01-31"], ["2023-02-31", "20230131"]),
        ("datetime", ["2023-01-31T10:00:00Z", "2023-01-31t10:00:00.5+01:00"], ["2023-01-31", "2023-01-31T24:00:00Z"]),
    ],
)
def test_named_formats(format_: str, good: list[str], bad: list[str]) -> None:
    """The result is none for a valid text, else its problems."""
    for text in good:
        assert evaluate(f"format.{format_}().validate(x).hasValue()", x=text) is False, text
    for text in bad:
        assert evaluate(f"format.named('{format_}').value().validate(x).value().size() > 0", x=text) is True, text


def test_messages_of_named_formats() -> None:
    """Messages are those of Kubernetes' validation of names."""
    rule = (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    )
    examples = "(e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    problems = [f"{rule}with an alphanumeric character {examples}"]
    assert evaluate("format.dns1123Label().validate('A').value()") == problems
    assert evaluate("format.dns1123Label().validate(x).value()[0]", x="a" * 64) == "must be no more than 63 characters"
    assert evaluate("format.named('nope').hasValue()") is False
    assert evaluate("format.uuid() == format.named('uuid').value()") is True
    assert evaluate("format.uuid() == format.date()") is False
