"""`download`: the files of one source from their official addresses, through the shared cache, to
data/download/<source>.

The released weights are imported on the way, as `gpt1 import` does, for acquire takes them in our
own form.
"""

import shutil
import sys

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder, write_json, writing_folder
from gpt1.params.schema import read_params
from gpt1.sources.addresses import DOWNLOADS
from gpt1.sources.download import ABOUT, fetch, import_weights
from gpt1.sources.table import OFFICIAL
from gpt1.tasks.table import all_sources


def main(name: str) -> None:
    """Say the licence, download each file or take it from the cache, put it under data/download."""
    params = read_params()
    if name not in params.download or name not in DOWNLOADS:
        raise UserError(
            "expected one source of params.yaml's download"
            f" ({', '.join(params.download) or 'none'}) that can be downloaded"
            f" ({', '.join(DOWNLOADS)}); found {name}"
        )
    source = all_sources()[name]
    print(f"{name}: licence {source.licence}; origin {source.origin}", file=sys.stderr, flush=True)
    places = [fetch(name, remote, params.acquire.max_unpacked_bytes) for remote in DOWNLOADS[name]]
    with writing_folder(stage_folder("download", name)) as folder:
        if name == OFFICIAL.name:
            import_weights(places[0].parent, folder)
        else:
            for path in places:
                shutil.copyfile(path, folder / path.name)
        files = {
            remote.name: {
                "address": remote.address,
                "checked": f"{remote.kind} {remote.checksum}, published by {remote.publisher}",
            }
            for remote in DOWNLOADS[name]
        }
        write_json(folder / ABOUT, {"files": files})
