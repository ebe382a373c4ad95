"""code.lock: in a project folder, where no code lies, what each stage rests on of the installed
package, so that DVC sees another version of it as it sees changed code in a checkout.

A stage's key there has a digest for each file and folder of gpt1 that the checkout's dvc.yaml names
as a dependency of it: its import closure. DVC follows no package, so the digests are to be brought
up to date before it looks. In a checkout there is no code.lock, and nothing here does anything.
"""

import hashlib
import os
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gpt1.base.errors import UserError
from gpt1.params.yaml import read_yaml
from gpt1.pipeline import template

LOCK = Path("code.lock")
# what else it holds beside stages: the package's version, the files of `gpt1 init` as it wrote them
VERSION, FILES = "gpt1", "files"
HEAD = (
    "# What the stages here rest on of the installed package gpt1, and the files of gpt1 init as it"
    " wrote them.\n# gpt1 run and gpt1 status keep it; commit it beside dvc.lock.\n"
)


@cache
def listed() -> dict[str, list[str]]:
    """The code of each group of stages, as paths that begin with gpt1/, by the checkout's
    dvc.yaml.
    """
    stages = read_yaml(template.files()["dvc.yaml"])["stages"]
    return {
        name: [path for path in stage.get("do", stage).get("deps", []) if path.startswith("gpt1/")]
        for name, stage in stages.items()
    }


@cache
def digest(path: str) -> str:
    """Sixteen digits for a file or folder of the installed package, by what Python may take from
    it.
    """
    root = template.PACKAGE.parent
    files = [root / path] if path.endswith(".py") else sorted((root / path).rglob("*"))
    whole = hashlib.sha256()
    for file in files:
        if file.is_file() and file.suffix != ".pyc":
            name = file.relative_to(root).as_posix().encode()
            whole.update(name + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()[:16]


def read_code() -> dict[str, Any]:
    """What code.lock holds; {} in a checkout. Raises UserError where it cannot be read."""
    kept = read_yaml(LOCK) if LOCK.is_file() else {}
    if LOCK.is_file() and not (isinstance(kept, dict) and {VERSION, FILES} <= kept.keys()):
        raise UserError(
            f"{LOCK}: expected one that gpt1 init wrote, found another; move it away, and gpt1 init"
            " writes one"
        )
    return dict(kept)


def changed_code(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The paths that differ between two sets of digests."""
    return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))


def installed() -> dict[str, Any]:
    """What code.lock is to say of the package as it is installed now."""
    stages = {name: {path: digest(path) for path in paths} for name, paths in listed().items()}
    return {VERSION: version("gpt1")} | {name: found for name, found in stages.items() if found}


def write_code(values: Mapping[str, Any]) -> None:
    """Write code.lock. Texts stand in quotes: digits alone would be read as a number."""
    text = f"{HEAD}{VERSION}: '{values[VERSION]}'\n"
    for name, rows in values.items():
        if name != VERSION:
            lines = "".join(f"  {path}: '{found}'\n" for path, found in rows.items())
            text += f"{name}:\n{lines}" if rows else f"{name}: {{}}\n"
    partial = Path(f".{LOCK}.{os.getpid()}.partial")  # several stages may start after an upgrade
    partial.write_text(text, encoding="utf-8")
    partial.replace(LOCK)


def refresh() -> None:
    """Bring code.lock up to date, where there is one, and say what of the package is another."""
    if not (kept := read_code()):
        return
    now = installed() | {FILES: kept.get(FILES, {})}
    if now == kept:
        return
    write_code(now)
    say(kept, now)


def say(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """On the standard error stream: which stages have other code, and whether files that
    `gpt1 init` wrote are of another version.
    """
    stages = [
        name for name in now if name not in (VERSION, FILES) and now[name] != before.get(name)
    ]
    which = f"other code for {', '.join(stages)}" if stages else "no other code for any stage"
    print(
        f"{LOCK}: gpt1 {before[VERSION]} was installed, now {now[VERSION]}: {which}",
        file=sys.stderr,
        flush=True,
    )
    of_package = {name: template.sixteen_digits(text.encode()) for name, text in template.texts()}
    if old := [name for name, found in now[FILES].items() if of_package.get(name, found) != found]:
        print(
            f"{', '.join(old)} here: gpt1 init brings to gpt1 {now[VERSION]} what you have not"
            " changed",
            file=sys.stderr,
            flush=True,
        )


def refuse_other_code(stage: str) -> None:
    """In a stage's own process: raises UserError where DVC is about to record, of a stage of this
    group, other code than it runs.
    """
    kept = read_code().get(stage, {})
    if changed := changed_code(kept, {path: digest(path) for path in kept}):
        raise UserError(
            f"{LOCK} tells of other code than is installed ({', '.join(changed)}), and DVC would"
            " record that: gpt1 status brings it up to date, then the same again"
        )
