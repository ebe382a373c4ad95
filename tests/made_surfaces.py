"""Every place where what others made is read: a small valid set of files, and the reading of it in
a folder of its own.

benchmarks/fuzz.py damages the files; test_finds.py reads what was found so. A read ends well, or
with an error of `expected`.
"""

import json
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import made_data
import made_forms
import made_models
import numpy as np
from ruamel.yaml import YAML

from gpt1.base.errors import UserError

ROOT = Path(__file__).parents[1]
BROKEN = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
)  # what the callers of readers of our own results make a line of
SENTENCES = (
    "A cat sleeps on the mat.",
    "Isn't it “late”? Ann's lamp, e.g., was LIT…",
    "He paid $5.20 (in cash); she didn't.",
)


class Surface(NamedTuple):
    """`write` puts valid files into the current folder, `read` reads them there; `expected`: what
    else may end it.
    """

    name: str
    write: Callable[[], None]
    read: Callable[[], object]
    expected: tuple[type[Exception], ...] = ()


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Within, `folder` is the current one."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def outcome(surface: Surface) -> str:
    """Read in the current folder: "result", or the one line that a person sees. Raises whatever
    else comes of it.
    """
    try:
        surface.read()
    except UserError as error:
        return str(error)
    except surface.expected as error:
        return f"{type(error).__name__}"
    return "result"


def put(name: str, content: str | bytes | dict[str, Any] | list[Any]) -> Path:
    """Write a file under the current folder."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content) if isinstance(content, dict | list) else content
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@cache
def vocabulary() -> Any:
    """One for all: spaCy takes a second to load."""
    return made_models.vocabulary()


def encode(text: str) -> None:
    """What every text goes through: ftfy, standardisation, spaCy, byte pairs."""
    vocabulary().decode(vocabulary().encode(text))


def write_params() -> None:
    made_data.write_params(Path())
    values = json.loads(Path("params.yaml").read_text())
    with Path("params.yaml").open("w") as file:
        YAML(typ="safe").dump(values, file)


def read_params() -> None:
    from gpt1.params.schema import read_params as read

    json.dumps(read().model_dump(mode="json"))


def write_conf() -> None:
    for name in ("paper", "town", "demo", "small"):
        put(f"conf/{name}.yaml", (ROOT / f"conf/{name}.yaml").read_bytes())


def read_conf() -> None:
    from gpt1.params.profile import compose
    from gpt1.params.schema import validate

    validate(compose("demo", ["finetune.epochs=2"]))


def write_archive(kind: str) -> None:
    rows = "".join(f"gj04\t{row % 2}\t\t{SENTENCES[row % 3]}\n" for row in range(6)).encode()
    files = {"CoLA/train.tsv": rows, "CoLA/dev.tsv": rows, "CoLA/original/readme": b"read me"}
    if kind == "zip":
        with zipfile.ZipFile("cola.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    else:
        for name, content in files.items():
            put(f"in/{name}", content)
        with tarfile.open("cola.tar.gz", "w:gz") as tar:
            tar.add("in/CoLA", "CoLA")
        for path in sorted(Path("in").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        Path("in").rmdir()


def read_archive(kind: str) -> None:
    from gpt1.sources.archives import unpack
    from gpt1.sources.find import find_files
    from gpt1.tasks.table import TASKS

    unpack(Path(f"cola.{kind}"), Path("spare/cola"), 2_000_000)
    find_files(TASKS["cola"].source, Path("spare/cola"))


def write_task(name: str) -> None:
    """A task's original files, made up."""
    Path("raw").mkdir()
    made_forms.MADE[name].forms["original"](Path("raw"))


@cache
def task_rows() -> Any:
    from gpt1.params.profile import compose
    from gpt1.params.schema import validate

    with inside(ROOT):
        return validate(compose("paper", [])).tasks


def read_task(name: str, folder: str = "raw") -> None:
    from gpt1.inference.prediction import read_file
    from gpt1.sources.acquire import copy
    from gpt1.sources.find import find_files
    from gpt1.tasks.readers import read_split, splits_to_read
    from gpt1.tasks.table import TASKS

    task, acquired = TASKS[name], Path("acquired")
    for file, place in (find_files(task.source, Path(folder)) or {}).items():
        copy(task.source, file, place, acquired / file)
    with suppress(UserError):
        for path in sorted(acquired.glob("*.*"))[:1]:
            read_file(path, task)
    splits = [
        read_split(task, split, acquired, task_rows()[name], 0.5)
        for split in splits_to_read(task, acquired, task_rows()[name])
    ]
    for split in splits:
        for example in split.examples[:3]:
            for text in (*example.context, *example.choices):
                encode(text)


def write_text() -> None:
    put("text.txt", "\n".join(SENTENCES) * 3)


def read_text() -> None:
    encode(Path("text.txt").read_bytes().decode("utf-8", "replace"))


def write_vocabulary() -> None:
    vocabulary().save(Path(), {})


def read_vocabulary() -> None:
    from gpt1.corpus.bpe import Vocabulary

    found = Vocabulary.load(Path())
    for text in SENTENCES:
        found.decode(found.encode_words(text.lower().split()))


def write_shards() -> None:
    made_data.write_shards(Path("shard"))


def read_shards() -> None:
    from gpt1.corpus.shards import Shards

    shards = Shards.open(Path("shard"))
    for split in ("train", "heldout"):
        assert (
            shards.windows(split, shards.starts(split, 0, 1, 4, 16), 16).max()
            < made_data.VOCABULARY
        )
        shards.words_per_token(split)
    shards.heldout_windows(5, 16)


def write_npz() -> None:
    made_data.write_task("mrpc")
    np.savez(
        "prompts.npz",
        tokens=np.arange(12, dtype=np.uint16),
        offsets=np.array([0, 2, 4, 6, 8, 10, 12]),
        uncounted=np.zeros((2, 2), np.int64),
        labels=np.array([0, 1]),
    )


def read_npz() -> None:
    from gpt1.inference.continuations import read_prompts
    from gpt1.train.batches import pad, read_examples

    examples = read_examples(Path("data/encode/glue/mrpc/train.npz"), 2)
    pad(examples, np.arange(min(3, len(examples))))
    read_prompts(Path("prompts.npz"))


def write_rows() -> None:
    put("sst2.csv", "first,label\n" + "".join(f'"{text}",1\n' for text in SENTENCES[:3]))
    put("race.jsonl", json.dumps({"first": "a", "second": "b", "choices": ["a", "b", "c", "d"]}))


def read_rows() -> None:
    from gpt1.inference.prediction import read_file
    from gpt1.tasks.table import TASKS

    for name, task in (("sst2.csv", "sst2"), ("race.jsonl", "race")):
        for example in read_file(Path(name), TASKS[task]).examples:
            encode(example.context[0])


SURFACES = (
    Surface("params", write_params, read_params),
    Surface("conf", write_conf, read_conf),
    *(
        Surface(kind, lambda kind=kind: write_archive(kind), lambda kind=kind: read_archive(kind))
        for kind in ("zip", "tar.gz")
    ),  # type: ignore[misc]
    *(
        Surface(
            f"task {name}", lambda name=name: write_task(name), lambda name=name: read_task(name)
        )  # type: ignore[misc]
        for name in ("snli", "mnli", "scitail", "race", "story_cloze", "mrpc", "stsb", "cola")
    ),
    Surface("text", write_text, read_text),
    Surface("vocabulary", write_vocabulary, read_vocabulary),
    Surface("shards", write_shards, read_shards),
    Surface("npz", write_npz, read_npz),
    Surface("rows", write_rows, read_rows),
)
