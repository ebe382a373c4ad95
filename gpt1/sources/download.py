"""Official files through the shared cache: one address after another, tried again and gone on with,
checked before they count as there.
"""

import subprocess
import sys
from pathlib import Path
from time import sleep

from gpt1.base.errors import TemporaryError, UserError
from gpt1.base.files import sync_file
from gpt1.base.locks import locked
from gpt1.sources.addresses import Remote
from gpt1.sources.cache import Partial, difference, expected, record
from gpt1.sources.transfer import FaultError, Terms, connected, transfer

ABOUT = "download.json"  # beside the files; acquire puts it into its manifest


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
    waiting = f"{remote.name}: another run downloads it; waiting"
    with locked(folder / f".{remote.name}.lock", on_wait=lambda _: terms.tell(waiting)):
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
        sync_file(partial.path.parent)
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
                transfer(session, address, partial, remote.bytes_, bool(wanted), terms)
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


def row_of(remote: Remote) -> dict[str, object]:
    """What is written down of a file: nothing that differs between two downloads of the same
    bytes.
    """
    checksum = remote.checksum
    checked = (
        f"{checksum.kind} {checksum.value}, published by {checksum.publisher}"
        if checksum
        else "sha256 of the first download"
    )
    return {"address": remote.addresses[0], "checked": checked}


def import_weights(files: Path, folder: Path) -> None:
    """Fill `folder` with what `gpt1 import` makes of the released files, in a process of its own.
    Raises UserError where it refuses.
    """
    made = folder / ".imported"
    command = [sys.executable, "-m", "gpt1.cli", "import", str(files), "--to", str(made)]
    done = subprocess.run(
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no word why"])[-1].removeprefix("error: ")
        raise UserError(f"the downloaded weights could not be imported: {why}")
    for path in sorted(made.iterdir()):
        path.rename(folder / path.name)
    made.rmdir()
