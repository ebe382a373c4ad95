"""Small files of a corpus in every form that people have them, and Project Gutenberg's licence
around a text.
"""

import gzip
import json

import pyarrow as pa
from pyarrow import parquet

HEADER = (
    "The Project Gutenberg EBook of Ba, by Ke\n\nThis eBook is for the use of anyone anywhere"
    " <http://x> &amp; more.\n\n*** START OF THIS PROJECT GUTENBERG EBOOK BA,\nOR THE LONG TITLE"
    " ***\n"
)
FOOTER = (
    "End of the Project Gutenberg EBook of Ba, by Ke\n\n*** END OF THIS PROJECT GUTENBERG EBOOK BA"
    " ***\n\nMore of the licence.\n"
)


def zstandard(data):
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


def write_jsonl(path, texts, field="text", pack=bytes):
    rows = (
        json.dumps({"id": number, **({field: text} if text is not None else {})})
        for number, text in enumerate(texts)
    )
    path.write_bytes(pack("".join(f"{row}\n" for row in rows).encode()))


def write_parquet(path, texts, field="text"):
    parquet.write_table(
        pa.table({"id": list(range(len(texts))), field: texts}), path, row_group_size=3
    )


def in_two(data):
    """Two Zstandard frames, as pzstd and cat make them."""
    return zstandard(data[:9]) + zstandard(data[9:])


FORMS = {
    "a.jsonl": write_jsonl,
    "a.jsonl.gz": lambda path, texts, field="text": write_jsonl(path, texts, field, gzip.compress),
    "a.jsonl.zst": lambda path, texts, field="text": write_jsonl(path, texts, field, in_two),
    "a.parquet": write_parquet,
}
