"""`download`: the files of one source from their official addresses, through the shared cache, to
data/download/<source>.

The released weights are imported on the way, as `gpt1 import` does, for acquire takes them in our
own form.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder, write_json, writing_folder
from gpt1.params.schema import read_params
from gpt1.sources.addresses import DOWNLOADS, Remote
from gpt1.sources.cache import cache_folder, offline
from gpt1.sources.download import Terms, fetch
from gpt1.sources.table import OFFICIAL, SOURCES
from gpt1.sources.transfer import PATIENCE
from gpt1.tasks.table import TASKS

ABOUT = "download.json"  # beside the files; acquire puts it into its manifest


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


def main(name: str) -> None:
    """Say the licence, download each file or take it from the cache, put it under data/download."""
    params = read_params()
    if name not in params.download or name not in DOWNLOADS:
        raise UserError(
            "expected one source of params.yaml's download"
            f" ({', '.join(params.download) or 'none'}) that can be downloaded"
            f" ({', '.join(DOWNLOADS)}); found {name}"
        )
    source = SOURCES[name] if name in SOURCES else TASKS[name].source

    def tell(line: str) -> None:
        print(f"{name}: {line}", file=sys.stderr, flush=True)

    tell(f"licence {source.licence}; origin {source.origin}")
    terms = Terms(cache_folder(), params.acquire.max_unpacked_bytes, offline(), PATIENCE, tell)
    places = {remote.name: fetch(name, remote, terms) for remote in DOWNLOADS[name]}
    with writing_folder(stage_folder("download", name)) as folder:
        if name == OFFICIAL.name:
            import_weights(next(iter(places.values())).parent, folder)
        else:
            for file, place in places.items():
                shutil.copyfile(place, folder / file)
        write_json(
            folder / ABOUT, {"files": {remote.name: row_of(remote) for remote in DOWNLOADS[name]}}
        )
