"""The page of licences: every package that an installed gpt1 stands on and its licence, from what
the packages say.
"""

import re
from collections.abc import Iterator
from importlib import metadata
from typing import NamedTuple

from packaging.requirements import Requirement

EXTRAS = ("docs", "pipeline", "remote", "serve", "test")
LONGEST = (
    80  # characters: what is longer is a licence's whole text, whose kind the classifiers tell
)
VAGUE = ("", "UNKNOWN", "Dual License")
READ = {"huey": "MIT", "skops": "MIT"}  # packages that say it in their file LICENSE alone
FREE = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software"
    r" Foundation|MPL|Mozilla|Zope|ZPL|Zlib|HPND|Unlicense|Artistic|Public Domain|CC0|"
    r"EPL|linking exception",
    re.IGNORECASE,
)


class Package(NamedTuple):
    """An installed package: whether gpt1 itself names it, and its licence in words; empty where it
    says none.
    """

    name: str
    version: str
    direct: bool
    licence: str


def normal(name: str) -> str:
    """A package's name as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needs(name: str, extras: set[str]) -> Iterator[tuple[str, set[str]]]:
    """What an installed package requires on this machine: names and their extras."""
    for line in metadata.requires(name) or []:
        wanted = Requirement(line)
        if wanted.marker is None or any(
            wanted.marker.evaluate({"extra": extra}) for extra in ("", *sorted(extras))
        ):
            yield normal(wanted.name), set(wanted.extras)


def packages() -> list[Package]:
    """Every package that gpt1 needs, itself or by way of others, in order of name; absent ones left
    out.
    """
    found: dict[str, Package] = {}
    looked: set[tuple[str, str]] = set()
    direct = {name for name, _ in needs("gpt1", set(EXTRAS))}
    waiting = [("gpt1", set(EXTRAS))]
    while waiting:
        name, extras = waiting.pop()
        if name in found and all((name, extra) in looked for extra in extras):
            continue
        looked |= {(name, extra) for extra in extras}
        try:
            found[name] = Package(name, metadata.version(name), name in direct, licence(name))
            waiting += needs(name, extras)
        except metadata.PackageNotFoundError:
            continue
    return [found[name] for name in sorted(found.keys() - {"gpt1"})]


def licence(name: str) -> str:
    """A package's licence in its own words: the expression, else the field, else the
    classifiers.
    """
    about = metadata.metadata(name)
    kinds = [
        line.rpartition(" :: ")[2]
        for line in about.get_all("Classifier") or []
        if line.startswith("License :: OSI Approved :: ")
    ]
    if expression := about.get("License-Expression"):
        return str(expression)
    said = " ".join((about.get("License") or "").split())
    if said in VAGUE or len(said) > LONGEST:
        said = " or ".join(kinds)
    return said or READ.get(name, "")


def licences() -> str:
    """A table of all, those that gpt1 names itself in bold."""
    rows = [
        f"| {f'**{one.name}**' if one.direct else one.name} |"
        f" {one.licence.replace('|', 'or') or 'not said'} |"
        for one in packages()
    ]
    return "\n".join(("| package | licence |", "|---|---|", *rows))
