"""Official files through the shared cache: one address after another, tried again and gone on with,
checked before they count as there.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import sleep

from gpt1.base.errors import TemporaryError, UserError
from gpt1.base.files import sync_folder
from gpt1.base.locks import locked
from gpt1.sources.addresses import Remote
from gpt1.sources.cache import difference, expected, record
from gpt1.sources.partial import Partial
from gpt1.sources.transfer import FaultError, Patience, connected, transfer

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Terms:
    """How to download: the cache, the most bytes of one file, whether the network may be asked, how
    long to wait, whom to tell lines.
    """

    cache: Path
    max_bytes: int
    offline: bool
    patience: Patience
    tell: Tell


def fetch(source: str, remote: Remote, terms: Terms) -> Path:
    """One file of a source, whole and checked: from the cache, or from the first of its addresses
    that gives it. Returns where it lies.

    Two that want the same file at once share one download. Raises UserError, TemporaryError where a
    later try may go well.
    """
    folder = terms.cache / source
    target = folder / remote.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"the cache {folder} cannot be made ({error.strerror}); set GPT1_CACHE to a folder of"
            " yours"
        ) from None
    with alone(
        folder / f".{remote.name}.lock",
        f"{remote.name}: another run downloads it; waiting",
        terms.tell,
    ):
        wanted = expected(terms.cache, source, remote)
        if target.is_file():
            wrong = difference(target, remote, wanted)
            if not wrong:
                terms.tell(f"{remote.name}: in the cache, {target.stat().st_size:,} bytes")
                record(terms.cache, source, remote, target, "put there by hand")
                return target
            if terms.offline:
                raise UserError(
                    f"{target}: {wrong}; GPT1_OFFLINE forbids to download it anew: put the right"
                    " file there"
                )
            aside = target.with_name(f"{target.name}.aside-{int(target.lstat().st_mtime)}")
            target.rename(aside)  # it may be the only copy of what a user has put there
            terms.tell(f"{target}: {wrong}; now {aside.name}; downloading it anew")
        if terms.offline:
            raise UserError(
                f"{remote.name} of {source} is not in the cache, and GPT1_OFFLINE forbids to"
                f" download it: put it there by hand as {target}, or take the setting away"
            )
        address = from_any(source, remote, Partial(folder / f".{remote.name}.partial"), terms)
    terms.tell(
        f"{remote.name}: {target.stat().st_size:,} bytes, "
        + (
            f"{remote.checksum.kind} as published by {remote.checksum.publisher}"
            if remote.checksum
            else f"no published checksum; sha256 {'as' if wanted else 'now'} recorded in the cache"
        )
        + f", from {address}"
    )
    return target


def from_any(source: str, remote: Remote, partial: Partial, terms: Terms) -> str:
    """Download from the first address that gives what is expected, put it into its place, and
    return the address. Raises as fetch.
    """
    faults, passing = [], False
    for number, address in enumerate(remote.addresses):
        try:
            from_one(source, remote, address, partial, terms)
        except FaultError as fault:
            faults.append(f"{address}: {fault}")
            passing = passing or fault.passing
            if number + 1 < len(remote.addresses):
                terms.tell(f"{faults[-1]}; trying the next address")
            continue
        sync_file(partial.path)
        record(terms.cache, source, remote, partial.path, address)
        partial.path.replace(partial.path.with_name(remote.name))
        partial.drop()
        sync_folder(partial.path.parent)
        return address
    kind, cure = (
        (TemporaryError, "try again later, what came is kept; or")
        if passing
        else (UserError, "nothing of it was kept;")
    )
    raise kind(
        f"{remote.name} of {source} could not be downloaded ({'; '.join(faults)}): {cure} put it"
        f" there by hand as {partial.path.with_name(remote.name)}; or go without {source}: gpt1"
        " profile"
    )


def from_one(source: str, remote: Remote, address: str, partial: Partial, terms: Terms) -> None:
    """Bring the partial file to its end from one address, and check it. Raises FaultError, after
    which nothing wrong is left.
    """
    wanted, patience = expected(terms.cache, source, remote), terms.patience
    tries, wait = 0, patience.first_wait_seconds
    while True:
        before = partial.size if partial.remembered(address) else 0
        try:
            with connected(patience) as session:
                terms.tell(
                    f"{remote.name}: from {address}"
                    + (f", on from byte {before:,}" if before else "")
                )
                transfer(
                    session,
                    address,
                    partial,
                    remote.bytes_,
                    bool(wanted),
                    terms.max_bytes,
                    patience,
                    terms.tell,
                )
            if not (wrong := difference(partial.path, remote, wanted)):
                return
            partial.drop()
            raise FaultError(
                wrong, passing=before > 0, anew=True
            )  # two versions may have been joined: the whole once more
        except FaultError as fault:
            gained = partial.size - before >= patience.gain_bytes and not fault.anew
            tries, wait = (1, patience.first_wait_seconds) if gained else (tries + 1, wait)
            pause = max(wait, fault.wait_seconds or 0.0)
            if not fault.passing:
                partial.drop()
                raise
            if pause > patience.longest_wait_seconds:
                raise FaultError(
                    f"{fault}, and asks to wait {pause:,.0f} s", passing=True
                ) from None
            if tries >= patience.tries:
                raise FaultError(f"{fault}, after {tries} tries", passing=True) from None
            terms.tell(f"{remote.name}: {fault}; again in {pause:g} s")
        sleep(pause)
        wait = min(2 * wait, patience.longest_wait_seconds)


@contextmanager
def alone(lock: Path, line: str, tell: Tell) -> Iterator[None]:
    """Hold a lock of the cache, waiting for whoever has it, whom `line` tells of."""
    with locked(lock, on_wait=lambda _: tell(line)):
        yield


def sync_file(path: Path) -> None:
    """Flush a file's bytes to disk, so that its new name survives a power cut only with them."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
