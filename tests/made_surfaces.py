"""Every place where what others made is read: a small valid set of files, and the reading of it in
a folder of its own.

test_finds.py reads them damaged. A read ends well, or with an error of `expected`.
"""

import gzip
import json
import shutil
from collections import namedtuple
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import made_data
import made_forms
import made_models
import numpy as np
from made_corpora import FOOTER, FORMS, HEADER, zstandard

from gpt1.base.errors import UserError
from gpt1.corpus.bpe import Vocabulary
from gpt1.corpus.cleaning import clean_file
from gpt1.corpus.files import list_corpus
from gpt1.corpus.shards import Shards
from gpt1.inference.prediction import read_file
from gpt1.inference.zero_shot import read_prompts
from gpt1.params.profile import compose
from gpt1.params.schema import read_params, validate
from gpt1.params.yaml import read_yaml, write_yaml
from gpt1.sources.acquire import copy
from gpt1.sources.archives import unpack
from gpt1.sources.find import find_files
from gpt1.tasks.definitions import TASKS
from gpt1.tasks.readers import read_split, splits_there
from gpt1.train.batches import pad, read_examples

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


# `write` puts valid files into the current folder, `read` reads them there; `expected`: what else
# may end it
Surface = namedtuple("Surface", "name write read expected", defaults=[()])


def outcome(surface):
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


def put(name, content):
    """Write a file under the current folder."""
    text = json.dumps(content) if isinstance(content, dict | list) else content
    made_data.put_files("", {name: text})


@cache
def vocabulary():
    """One for all: spaCy takes a second to load."""
    return made_models.vocabulary()


def encode(text):
    """What every text goes through: ftfy, standardisation, spaCy, byte pairs."""
    vocabulary().decode(vocabulary().encode(text))


def write_params():
    made_data.write_params(Path())
    write_yaml(Path("params.yaml"), read_yaml(Path("params.yaml")), "")


def write_conf():
    for name in ("paper", "town", "demo", "small"):
        put(f"conf/{name}.yaml", (ROOT / f"conf/{name}.yaml").read_bytes())


def write_archive(kind):
    rows = "".join(f"gj04\t{row % 2}\t\t{SENTENCES[row % 3]}\n" for row in range(6))
    files = {"train.tsv": rows, "dev.tsv": rows, "original/readme": "read me"}
    with TemporaryDirectory() as folder:
        made_data.put_files(f"{folder}/CoLA", files)
        shutil.make_archive("cola", kind, folder)


def read_archive(name):
    unpack(Path(name), Path("spare/cola"), 2_000_000)
    find_files(TASKS["cola"].source, Path("spare/cola"))


def write_task(name, form="original"):
    """A task's files in a form of those that are made up."""
    Path("raw").mkdir()
    made_forms.MADE[name].forms[form](Path("raw"))


def read_task(name):
    task, acquired, row = TASKS[name], Path("acquired"), made_data.paper().tasks[name]
    for file, place in (find_files(task.source, Path("raw")) or {}).items():
        copy(task.source, file, place, acquired / file)
    with suppress(UserError):
        for path in sorted(acquired.glob("*.*"))[:1]:
            read_file(path, task)
    found = [read_split(task, split, acquired, row, 0.5) for split in splits_there(task, acquired)]
    for split in found:
        for example in split.examples[:3]:
            for text in (*example.context, *example.choices):
                encode(text)


def write_text():
    put("text.txt", "\n".join(SENTENCES) * 3)


def read_text():
    encode(Path("text.txt").read_bytes().decode("utf-8", "replace"))


def write_corpus():
    rows = [f"{SENTENCES[number % 3]} Chapter {number}." for number in range(12)]
    text = "\n".join(rows)
    put("books/a.txt", f"{HEADER}{text}\n{FOOTER}")
    put("books/b.txt", text.encode("utf-16"))
    put("books/c.txt.gz", gzip.compress(text.encode(), mtime=0))
    put("books/d.txt.zst", zstandard(text.encode()))
    for name in ("e.jsonl", "f.parquet"):
        FORMS[f"a.{name.partition('.')[2]}"](Path("books", name), rows)


def read_corpus():
    cleaner = vocabulary()._cleaner
    for file in list_corpus(Path("books")):
        clean_file(cleaner, file, "text", Path("cleaned"))


def read_vocabulary():
    found = Vocabulary.load(Path())
    for text in SENTENCES:
        found.decode(found.encode_words(text.lower().split()))


def read_shards():
    shards = Shards.open(Path("shard"))
    for split in ("train", "heldout"):
        windows = shards.windows(split, shards.starts(split, 0, 1, 4, 16), 16)
        assert windows.max() < made_data.VOCABULARY
        shards.words_per_token(split)
    shards.heldout_windows(5, 16)


def write_npz():
    made_data.write_task("mrpc")
    np.savez(
        "prompts.npz",
        tokens=np.arange(12, dtype=np.uint16),
        offsets=np.array([0, 2, 4, 6, 8, 10, 12]),
        uncounted=np.zeros((2, 2), np.int64),
        labels=np.array([0, 1]),
    )


def read_npz():
    examples = read_examples(Path("data/encode/glue/mrpc/train.npz"), 2)
    pad(examples, np.arange(min(3, len(examples))))
    read_prompts(Path("prompts.npz"))


def task_surface(task, form="original"):
    name = f"task {task}" if form == "original" else f"export {form}"
    return Surface(name, partial(write_task, task, form), partial(read_task, task))


ORIGINALS = ("snli", "mnli", "scitail", "race", "story_cloze", "mrpc", "stsb", "cola")
SURFACES = (
    Surface("params", write_params, lambda: json.dumps(read_params().model_dump(mode="json"))),
    Surface("conf", write_conf, lambda: validate(compose("demo", ["finetune.epochs=2"]))),
    Surface("zip", partial(write_archive, "zip"), partial(read_archive, "cola.zip")),
    Surface("tar.gz", partial(write_archive, "gztar"), partial(read_archive, "cola.tar.gz")),
    *map(task_surface, ORIGINALS),
    *(task_surface("snli", form) for form in ("parquet", "jsonl")),
    Surface("text", write_text, read_text),
    Surface("corpus", write_corpus, read_corpus),
    Surface("vocabulary", lambda: vocabulary().save(Path(), {}), read_vocabulary),
    Surface("shards", lambda: made_data.write_shards(Path("shard")), read_shards),
    Surface("npz", write_npz, read_npz),
)
