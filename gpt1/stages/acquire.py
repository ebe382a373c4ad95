"""`acquire SOURCE`: copy a source's official files to data/acquire, with a manifest. A task's files
are read once, to find early what `encode` cannot.
"""

import shutil
import sys

from tqdm import tqdm

from gpt1.base.files import DATA, read_json, stage_folder, write_json, writing_folder
from gpt1.params.schema import read_params, refuse_unknown
from gpt1.sources.acquire import copy, locate, named_as_brought
from gpt1.sources.definitions import MADE_UP, is_made_up
from gpt1.sources.download import ABOUT
from gpt1.tasks.definitions import READ, all_sources
from gpt1.tasks.readers import check_task


def main(name: str) -> None:
    """Find, copy, read, describe: one source."""
    params = read_params()
    sources = all_sources()
    refuse_unknown(name, params.sources, "sources", sources)
    source, row = sources[name], params.sources[name]
    raw = DATA / row.folder / name
    with writing_folder(stage_folder("acquire", row.group, name)) as folder:
        spare = folder / ".unpacked"
        left_out = row.folder == "none"
        places = {} if left_out else locate(source, raw, spare, params.acquire.max_unpacked_bytes)
        manifest = {
            file: copy(source, file, path, folder / file)
            for file, path in tqdm(places.items(), desc=name, unit="file", disable=None)
        }
        if name in READ:
            with named_as_brought({folder / file: places[file] for file in places} | {spare: raw}):
                check_task(READ[name], folder, params.encode.max_unreadable_fraction)
        shutil.rmtree(spare, ignore_errors=True)
        origin, licence = source.origin, source.licence
        if is_made_up(row.folder):
            origin, licence = MADE_UP, "MIT"
        about = {"source": name, "origin": origin, "licence": licence, "files": manifest}
        if row.folder == "raw" and (raw / ABOUT).is_file():
            about["downloaded"] = read_json(raw / ABOUT)
        write_json(folder / "manifest.json", about)
    print(f"{name}: {len(manifest)} files from {raw}", file=sys.stderr)
