"""`python -m gpt1.pipeline.dvc …`: DVC's command line, which writes dvc.lock a stage at a time.

To record a stage, DVC parses the whole file with its comments and writes it anew, in Python: of a
hundred stages that is most of what a small one takes. Here the lines of other stages are left as
they are, which gives the same bytes; a file that DVC has not written itself is left to DVC's own
way.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dvc import dvcfile
from dvc.cli import main
from dvc.utils.serialize import dump_yaml, dumps_yaml, modify_yaml, parse_yaml

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
    data = parse_yaml(text, path)
    before = dict(data["stages"])
    yield data
    stages = data["stages"]
    if data.keys() != {"schema", "stages"} or not before.keys() <= stages.keys():
        dump_yaml(path, data, fs=fs)
        return
    for name, entry in stages.items():
        if entry is not before.get(name):
            lines[name] = dumps_yaml({"stages": {name: entry}}).removeprefix("stages:\n")
    with fs.open(path, "w+", encoding="utf-8") as file:
        file.write(HEAD + "".join(lines.values()))


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


if __name__ == "__main__":
    # not of DVC's documented surface: tests/test_dvc_lock.py tells when it changes
    dvcfile.modify_yaml = modify
    sys.exit(main(sys.argv[1:]))
