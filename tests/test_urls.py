"""Links out of model text (spec §13.4): what is refused, what comes back, and that no parser sees anything else."""

from __future__ import annotations

import html
import re
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agjson.urls import safe_url

FORBIDDEN = ("javascript", "data", "vbscript")


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://a.example/", "https://a.example/"),
        ("http://a.example/p?q=1#f", "http://a.example/p?q=1#f"),
        ("HTTPS://A.Example/Path", "https://a.example/Path"),
        ("https://a.example", "https://a.example/"),
        ("https://a.example?q", "https://a.example/?q"),
        ("https://a.example#f", "https://a.example/#f"),
        ("https://a.example.", "https://a.example./"),
        ("https://a.example:443/", "https://a.example/"),
        ("http://a.example:80/", "http://a.example/"),
        ("https://a.example:80/", "https://a.example:80/"),
        ("https://a.example:/", "https://a.example/"),
        ("https://a.example:08080/", "https://a.example:8080/"),
        ("https://127.0.0.1:8000/", "https://127.0.0.1:8000/"),
        ("https://[::1]:8000/", "https://[::1]:8000/"),
        ("https://[2001:DB8::1]", "https://[2001:db8::1]/"),
        ("https://my_host-1/", "https://my_host-1/"),
        ("https://münchen.example/", "https://xn--mnchen-3ya.example/"),
        # A look-alike of a known host shows as what it is.
        ("https://\u0430pple.example/", "https://xn--pple-43d.example/"),
        ("https://a\u3002example/", "https://a.example/"),
        ("https://a.example/ü?ü#ü", "https://a.example/%C3%BC?%C3%BC#%C3%BC"),
        ("https://a.example/😀", "https://a.example/%F0%9F%98%80"),
        ("https://a.example/a%20b", "https://a.example/a%20b"),
        ("https://a.example/\"<x>'`{|}^", "https://a.example/%22%3Cx%3E%27%60%7B%7C%7D%5E"),
        ("https://a.example/javascript:alert(1)", "https://a.example/javascript:alert(1)"),
        ("https://a.example/?next=data:text/html,x", "https://a.example/?next=data:text/html,x"),
        ("https://a.example/@b", "https://a.example/@b"),
        ("https://a.example/?q=[1]", "https://a.example/?q=[1]"),
    ],
)
def test_a_web_address_comes_back_in_its_normal_form(url: str, safe: str) -> None:
    assert safe_url(url) == safe


@pytest.mark.parametrize(
    "url",
    [
        *("javascript:alert(1)", "data:text/html,<script>alert(1)</script>", "vbscript:msgbox(1)"),
        *("JaVaScRiPt:alert(1)", "DATA:,x", "VBScript:x", "javascript://a.example/%0Aalert(1)"),
        # What browsers drop from a URL or from its beginning.
        *("java\nscript:alert(1)", "java\tscript:alert(1)", "java\rscript:alert(1)", "\tjavascript:x", " javascript:x"),
        *("\x00javascript:x", "\x01javascript:x", "java\x00script:x", "\x1fjavascript:x", "javascript\t:x"),
        *("java\u200bscript:x", "\ufeffjavascript:x", "\u202ejavascript:x", "java\xadscript:x", "\u2066data:,x"),
        # Entities, escapes and look-alikes in the scheme.
        *("javascript&colon;x", "java&Tab;script:x", "&#106;avascript:x", "java&#x0A;script:x", "javascript&#58;x"),
        *("javascript%3Ax", "%6aavascript:x", "java%0ascript:x", "j\u0430vascript:x"),
        *("\uff4aavascript:x", "javascript\uff1ax"),
        *("\uff48ttps://a.example/", "htt\u0440s://a.example/", "https\uff1a//a.example/", "https&colon;//a.example/"),
        # Relative, without a scheme, or with another one.
        *("", " ", "/", "a", "a.html", "//a.example/", "///a.example", "/\\a.example", "\\\\a.example"),
        *("?x", "#x", ":x"),
        *("://a.example", "file:///etc/passwd", "ftp://a.example/", "blob:https://a.example/1", "about:blank"),
        *("view-source:https://a.example", "filesystem:https://a.example/", "feed:javascript:x", "jar:x", "ws://a/"),
        *("mailto:a@b.example", "tel:1", "intent://a#Intent;end", "ui://widget/x", "httpss://a", "http+x://a"),
        # Parsers that do not agree on where the host is.
        *("https:a.example", "https:/a.example", "https:///a.example", "https:\\\\a.example", "https:/\\a.example"),
        *("https://a.example\\@b.example/", "https://a.example\\.b.example/", "https://a.example/\\b", "https://"),
        *("https:///", "https://?q", "https://#f", "https://:80/", "https://@/", "https://."),
        *("https://user@a.example/", "https://user:pw@a.example/", "https://bank.example@evil.example/"),
        *("https://bank.example:443@evil.example/", "https://a.example%2F@evil.example", "https://@a.example/"),
        *("https://a%2eexample/", "https://a%00.example/", "https://%61.example/", "https://a℀b.example/"),
        *("https://a..example/", "https://.a.example/", "https://a.example:x/", "https://a.example:65536/"),
        *("https://a.example:-1/", "https://a.example:80:80/", "https://a.example:٣/", "https://a.example:+80/"),
        *("https://[::1/", "https://::1/", "https://[a.example]/", "https://[::1]a/", "https://[fe80::1%25eth0]/"),
        *("https://[::1]@a/", "https://a[.example/", "https://a,b/", "https://a;b/", "https://a!/", "https://a*b/"),
        *("https://a b.example/", "https://a.example/a b", "https://a.example/ ", "\u3000https://a.example/"),
        *("https://a.example/\n", "https://a.example/\u2028", "https://a.example/\x7f", "https://a.example/\x85"),
        *("https://a.example/\u202egpj.exe", "https://a.example/\u200b", "https://a.example/\ufeff"),
        *("https://a.example/\ud800", "https://\ud800.example/", "https://a.example/\ue000", "https://a\u200d.example/"),
        *("https://" + "ü" * 5000 + ".example/", "https://" + "a" * 100 + "ü.example/"),
        # Names that the two revisions of their mapping read in two ways.
        *("https://faß.example/", "https://ςα.example/", "https://a\ufe0fü.example/"),
    ],
)  # fmt: skip
def test_what_could_be_anything_else_is_refused(url: str) -> None:
    assert safe_url(url) is None


@pytest.mark.parametrize(
    ("url", "schemes", "safe"),
    [
        ("mailto:A@b.example?subject=x", ["mailto"], "mailto:A@b.example?subject=x"),
        ("MailTo:a@b.example", ["https", "MAILTO"], "mailto:a@b.example"),
        ("ui://widget/x", ["ui"], "ui://widget/x"),
        ("myapp://Host", ["myapp"], "myapp://host/"),
        ("myapp:/x", ["myapp"], "myapp:/x"),
        ("file:///tmp-file", ["file"], "file:///tmp-file"),
        ("com.example.app:open", ["com.example.app"], "com.example.app:open"),
        ("myapp://user@host/", ["myapp"], None),
        ("myapp:", ["myapp"], None),
        ("mailto:a\nb", ["mailto"], None),
        ("http://a.example/", ["https"], None),
        ("https://a.example/", [], None),
        ("javascript:x", ["https"], None),
    ],
)
def test_a_host_may_name_its_schemes(url: str, schemes: list[str], safe: str | None) -> None:
    assert safe_url(url, schemes) == safe


@pytest.mark.parametrize("scheme", ["javascript", "DATA", "VbScript", "", "https:", "a b", "1a", "ü", "java\nscript"])
def test_some_schemes_cannot_be_named(scheme: str) -> None:
    with pytest.raises(ValueError, match=r"scheme|never safe"):
        safe_url("https://a.example/", ["https", scheme])


def test_one_text_is_no_list_of_schemes() -> None:
    with pytest.raises(ValueError, match="list of schemes"):
        safe_url("https://a.example/", "https")


def browser_scheme(url: str) -> str:
    """The scheme that the WHATWG URL standard reads: without controls and blanks at the ends, tabs and line ends."""
    text = re.sub("[\t\n\r]", "", url.strip("".join(map(chr, range(0x21)))))
    match = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", text)
    return match[1].lower() if match else ""


def browser_host(url: str) -> str:
    """The host that the standard reads of a web address: any number of slashes of both kinds, up to the last ``@``."""
    text = re.sub("[\t\n\r]", "", url.strip("".join(map(chr, range(0x21)))))
    authority = re.split(r"[/\\?#]", re.sub(r"^[^:]*:[/\\]*", "", text), maxsplit=1)[0]
    return authority.rpartition("@")[2]


noise = st.text("\t\n\r\x00\x0b\x1f \xa0\xad\u200b\u2028\u202e\ufeff&;#:%/\\@?.[]", max_size=3)
parts = st.sampled_from(
    [*FORBIDDEN, "https", "http", "HTTPS", "JavaScript", "&colon;", "&Tab;", "%3A", "a.example", "//"]
)
pieces = st.lists(st.one_of(noise, parts, st.text(max_size=4)), max_size=8).map("".join)
hosts = st.builds("https://{}{}".format, pieces, pieces)


@given(st.one_of(pieces, hosts, st.text()))
def test_no_parser_sees_another_scheme_or_host_than_what_was_checked(url: str) -> None:
    safe = safe_url(url)
    seen = {browser_scheme(url), browser_scheme(html.unescape(url))}
    if safe is None:
        return
    assert not seen & set(FORBIDDEN)
    assert seen == {urlsplit(url).scheme} == {urlsplit(safe).scheme}
    assert urlsplit(safe).scheme in ("https", "http")
    assert safe.isascii()
    assert safe.isprintable()
    assert not re.search(r"[\s\"'<>\\`]", safe)
    # Whoever reads what was returned reads the same host, and no more than a host and a port.
    assert browser_host(safe) == urlsplit(safe).netloc != ""
    assert urlsplit(safe).username is None
    # Its own safe form, also where a page forgets to escape it.
    assert safe_url(safe) == safe
    assert browser_scheme(html.unescape(safe)) == urlsplit(safe).scheme


@given(
    st.sampled_from(FORBIDDEN),
    st.lists(st.booleans(), min_size=10, max_size=10),
    noise,
    noise,
    st.integers(0, 10),
    st.text(),
)
def test_a_forbidden_scheme_is_refused_in_any_disguise(
    scheme: str, upper: list[bool], before: str, inside: str, at: int, rest: str
) -> None:
    mixed = "".join(letter.upper() if up else letter for letter, up in zip(scheme, upper, strict=False))
    at = min(at, len(mixed))
    assert safe_url(f"{before}{mixed[:at]}{inside}{mixed[at:]}:{rest}") is None
    assert safe_url(f"{before}{mixed}:{rest}", ["https", "http", "mailto"]) is None
