"""Links out of model text: which may be followed or drawn (spec §13.4)."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["WEB_SCHEMES", "safe_url"]

WEB_SCHEMES = ("https", "http")
"""The schemes that `safe_url` lets pass unless told otherwise."""

_NEVER = frozenset(("javascript", "data", "vbscript"))
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
# What ends an attribute or opens a tag, and what browsers and servers disagree about; never a delimiter of a URL.
_ESCAPED = re.compile("[^!-~]|[\"'<>\\\\^`{|}]")
_HOST = re.compile(r"[a-z0-9_~-]+(?:\.[a-z0-9_~-]+)*\.?")
_PORT = re.compile(r"[0-9]{1,5}")
_DEFAULT_PORTS = {"http": 80, "https": 443}
# A name of the domain name system has 253 characters at most, of up to four bytes each before it is mapped.
_MAX_HOST = 1024


def safe_url(url: str, schemes: Iterable[str] = WEB_SCHEMES) -> str | None:
    """The URL as it may be put into a link, or None where it must not be (spec §13.4).

    Nothing is repaired: a URL that browsers and parsers could read in two ways is refused, so that what is checked is
    what is opened. Refused are

    * every scheme that is not named, relative and scheme-relative references included;
    * whitespace, control, format and bidirectional characters, and backslashes, wherever they stand: browsers drop or
      turn some of them, so that a scheme or a host may hide behind them;
    * ``http`` and ``https`` without exactly two slashes and a host, and, with any scheme, a user name or password in
      front of the host (``https://bank.example@evil.example``), an escape in the host, an ill-formed port, and an
      international host that not everybody maps to the same one (``faß.example``).

    What is returned is printable ASCII: the scheme and the host in lower case, an international host in its ``xn--``
    form, a default port left out, an empty path as ``/``, and quotes, angle brackets, braces and non-ASCII characters
    of the rest percent-encoded. It is its own safe form. Where it is put into HTML, ``&`` still has to be escaped.

    This checks what a link can do in a browser, not where it leads: a server that fetches URLs needs a policy about
    addresses as well (spec §13.5).

    Args:
        url: the URL, as the model or the client gave it.
        schemes: the schemes to let pass, without their colon. ``javascript``, ``data`` and ``vbscript`` cannot be.

    Raises:
        ValueError: a scheme that must be refused, or that is none.
    """
    allowed = _schemes(schemes)
    # Of all separators and other characters without a glyph, the plain space alone counts as printable.
    if not url.isprintable() or " " in url or "\\" in url:
        return None
    match = _SCHEME.match(url)
    if match is None or (scheme := match[1].lower()) not in allowed:
        return None
    rest = url[match.end() :]
    if rest.startswith("//"):
        authority, path = _split(rest[2:])
        # Only where a scheme has no servers at all, such as `file`, may the host be missing.
        host = _host(authority, _DEFAULT_PORTS.get(scheme)) if authority or scheme in _DEFAULT_PORTS else ""
        if host is None:
            return None
        rest = f"//{host}{path if path.startswith('/') else f'/{path}'}"
    elif not rest or scheme in _DEFAULT_PORTS:
        return None
    return f"{scheme}:{_ESCAPED.sub(_escape, rest)}"


def _schemes(schemes: Iterable[str]) -> set[str]:
    if isinstance(schemes, str):
        raise ValueError(f"schemes is a list of schemes, not one text: {schemes!r}")
    allowed = {scheme.lower() for scheme in schemes}
    for scheme in allowed:
        if scheme in _NEVER:
            raise ValueError(f"a {scheme}: URL is never safe (spec 13.4)")
        if not _SCHEME.fullmatch(f"{scheme}:"):
            raise ValueError(f"no scheme: {scheme!r}")
    return allowed


def _split(rest: str) -> tuple[str, str]:
    for at, character in enumerate(rest):
        if character in "/?#":
            return rest[:at], rest[at:]
    return rest, ""


def _host(authority: str, default_port: int | None) -> str | None:
    """The host and port in their normal form; None: there is none, or not one alone."""
    if authority.startswith("["):
        host, closed, tail = authority[1:].partition("]")
        host = f"[{host.lower()}]" if closed and _is_ipv6(host) else ""
        if tail and not tail.startswith(":"):
            return None
        port = tail[1:]
    else:
        name, _, port = authority.partition(":")
        host = _name(name)
    if not host or (port and not (_PORT.fullmatch(port) and int(port) < 65536)):
        return None
    return f"{host}:{int(port)}" if port and int(port) != default_port else host


def _name(name: str) -> str:
    if not name.isascii():
        if len(name) > _MAX_HOST:
            return ""
        try:
            mapped = name.encode("idna").decode("ascii")
            if mapped.encode().decode("idna") != _as_browsers_read(name):
                return ""  # such as one with a sharp s: to some it is "ss"
            name = mapped
        except UnicodeError:
            return ""
    name = name.lower()
    return name if _HOST.fullmatch(name) else ""


def _as_browsers_read(name: str) -> str:
    from unicodedata import normalize

    return normalize("NFKC", name.replace("\u3002", ".").replace("\uff61", ".")).lower()


def _is_ipv6(text: str) -> bool:
    from ipaddress import IPv6Address

    try:
        # A zone (fe80::1%eth0) is no part of a URL.
        return bool(IPv6Address(text)) and "%" not in text
    except ValueError:
        return False


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())
