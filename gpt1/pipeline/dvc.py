"""`python -m gpt1.pipeline.dvc …`: DVC's command line with its ways of reading and writing made
quick, which are most of what a small stage takes.

To record a stage, DVC parses the whole of dvc.lock with its comments and writes it anew, in Python.
Here the lines of other stages are left as they are, which gives the same bytes; a file that DVC has
not written itself is left to DVC's own way. For every stage DVC parses dvc.lock, and params.yaml
several times, and walks all of that for every key. Here a text is parsed once, dvc.lock once for
all processes, and a key is looked up.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from functools import lru_cache, reduce
from hashlib import sha256
from operator import getitem
from pathlib import Path
from typing import Any

from gpt1.base.errors import USER_ERROR_STATUS, run_stage
from gpt1.base.extras import how_to_get
from gpt1.base.files import writing
from gpt1.pipeline.code import refresh

try:
    from dvc import dvcfile
    from dvc.cli import main
    from dvc.dependency import param
    from dvc.dependency.param import read_param_file
    from dvc.utils import strictyaml
    from dvc.utils.serialize import (
        _yaml,
        dump_yaml,
        dumps_yaml,
        load_path,
        modify_yaml,
        parse_yaml,
    )
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    print(f"error: {how_to_get(error)}", file=sys.stderr)
    sys.exit(USER_ERROR_STATUS)

KEPT = Path(".dvc/tmp/gpt1-dvc-lock.json")  # what the latest dvc.lock holds, for other processes
TEXTS = 8  # the latest that are kept, parsed, in this one
HEAD = "schema: '2.0'\nstages:\n"
UNUSUAL = re.compile(r"^\S|#", re.MULTILINE)  # further sections, comments


@contextmanager
def modify(path: str, fs: Any = None) -> Iterator[Any]:
    """As DVC's modify_yaml: what a file of YAML holds, to be changed within the block."""
    text = read(path, fs) if path.endswith("dvc.lock") else ""
    if not (lines := lines_by_stage(text)):
        with modify_yaml(path, fs=fs) as data:
            yield data
        return
    data = parse(text, path)
    before, plain = dict(data["stages"]), parse(text, path)
    yield data
    stages = data["stages"]
    if data.keys() != {"schema", "stages"} or not before.keys() <= stages.keys():
        dump_yaml(path, data, fs=fs)
        return
    for name, entry in stages.items():
        if entry is not before.get(name):
            written = dumps_yaml({"stages": {name: entry}})
            lines[name] = written.removeprefix("stages:\n")
            plain["stages"] |= parse_yaml(written, path)["stages"]
    text = HEAD + "".join(lines.values())
    with writing(
        Path(path).resolve()
    ) as file:  # DVC writes in place: a kill amid that cuts it short
        file.write(text)
    keep(text, plain)


def read(path: str, fs: Any) -> str:
    """The text of a file; none where it is not there."""
    if fs is None or not fs.exists(path):
        return ""
    with fs.open(path, encoding="utf-8") as file:
        return str(file.read())


def lines_by_stage(text: str) -> dict[str, str]:
    """The lines of each stage by its name, of a dvc.lock as DVC writes it; {} for any other."""
    body = text.removeprefix(HEAD)
    if body == text or not body.endswith("\n") or UNUSUAL.search(body):
        return {}
    lines: dict[str, str] = {}
    for entry in re.split(r"^(?=  \S)", body, flags=re.MULTILINE)[1:]:
        name = re.match(r"  ([\w@.-]*[A-Za-z_][\w@.-]*):\n", entry)
        if not name or name[1] in lines:
            return {}
        lines[name[1]] = entry
    return lines


def parse(text: str, path: Any, typ: str = "safe") -> Any:
    """As DVC's parse_yaml, of a text that was parsed before at once: plain values, that the reader
    may change.
    """
    return deepcopy(parsed(text, str(path))) if typ == "safe" else parse_yaml(text, path, typ)


@lru_cache(TEXTS)
def parsed(text: str, path: str) -> Any:
    """What a text of YAML holds; of a dvc.lock as another process found it, where that is kept."""
    if not path.endswith("dvc.lock"):
        return parse_yaml(text, path)
    with suppress(OSError, ValueError, TypeError):
        digest, values = json.loads(KEPT.read_bytes())
        if digest == digest_of(text):
            return values
    values = parse_yaml(text, path)
    keep(text, values)
    return values


def digest_of(text: str) -> str:
    """What stands for a text."""
    return sha256(text.encode()).hexdigest()


def keep(text: str, values: Any) -> None:
    """Keep what the text of a dvc.lock holds, where JSON can hold it."""
    partial = KEPT.with_name(f"{KEPT.name}.{os.getpid()}")
    with suppress(OSError, TypeError, ValueError, RecursionError):
        if json.loads(json.dumps(values)) == values:
            partial.write_text(json.dumps([digest_of(text), values]), encoding="utf-8")
            partial.replace(KEPT)


def read_keys(
    fs: Any, path: str, keys: list[str] | None = None, flatten: bool = False, **options: Any
) -> Any:
    """As DVC's read_param_file: values by their dotted keys. Where one is not there under its very
    name, by DVC's own way.
    """
    if keys and flatten:
        values = load_path(path, fs, **options)
        with suppress(KeyError, TypeError):
            return {key: reduce(getitem, key.split("."), values) for key in keys}
    return read_param_file(fs, path, keys, flatten, **options)


def quicken() -> None:
    """Have DVC, in this process, go these ways.

    They are not of its documented surface: tests/test_dvc_lock.py tells when that changes.
    """
    dvcfile.modify_yaml = modify
    _yaml.parse_yaml = strictyaml.parse_yaml = parse
    param.read_param_file = read_keys


if __name__ == "__main__":
    quicken()
    run_stage(refresh)
    sys.exit(main(sys.argv[1:]))
