"""The only YAML: files read as YAML 1.2, so that 1e-3 is a number, and written as DVC does."""

import re
from codecs import BOM_UTF8
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError

from gpt1.base.errors import ELSEWHERE, UserError, not_utf8
from gpt1.base.files import writing

LARGEST_BYTES = 256 * 1024  # of a file of YAML; ours have some 10,000
MOST_VALUES = 100_000
MOST_BITS = 64
MOST_NESTED = 32


def read_yaml(path: Path) -> Any:
    """Plain values of a YAML 1.2 file (so 1e-3 is a number). Raises UserError where it cannot be
    read, or is larger than any of ours.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
        if len(data) > LARGEST_BYTES:
            raise UserError(
                f"{path}: expected at most {LARGEST_BYTES:,} bytes, found more; it is no file of"
                " this pipeline: compose it anew with gpt1 profile"
            )
        return parse_yaml(data.removeprefix(BOM_UTF8).decode("utf-8"), str(path))
    except FileNotFoundError:
        raise UserError(f"{path} is not there; compose it with gpt1 profile; {ELSEWHERE}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: expected UTF-8, found {not_utf8(error)}; save it so") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error}") from None


def parse_yaml(text: str, where: str = "the text") -> Any:
    """Plain values of YAML 1.2 text; `where` names it in an error. Raises UserError where it is no
    YAML, or would burst.
    """
    depth = accumulate(1 if mark in "[{" else -1 for mark in re.findall(r"[\[\]{}]", text))
    if max(depth, default=0) > MOST_NESTED:  # the parser's time grows with its square
        raise UserError(
            f"{where}: expected brackets nested at most {MOST_NESTED} deep, found more; mend it"
        )
    try:
        if (
            "*" in text
        ):  # an alias of a list of aliases of a list … stands for more values than any memory holds
            _count(YAML(typ="safe", pure=True).compose(text), {}, where)
        values = YAML(typ="safe", pure=True).load(text)
    except UserError:
        raise
    except YAMLError as error:
        raise UserError(f"{where} is not YAML: {' '.join(str(error).split())}") from None
    # the parser lets through what int(), datetime, deep nesting and its own slips raise
    except Exception as error:
        raise UserError(
            f"{where} is not YAML: {type(error).__name__} in reading it; compose it anew with gpt1"
            " profile"
        ) from None
    _refuse_huge_numbers(values, where)
    return values


def _count(node: Any, counted: dict[int, int], where: str) -> int:
    """How many values a node stands for, with aliases written out. Raises UserError for too many,
    or a node within itself.
    """
    if id(node) in counted:
        found = counted[id(node)]
    else:
        counted[id(node)] = MOST_VALUES  # until it is known: what holds itself has no end
        parts = node.value if isinstance(getattr(node, "value", None), list) else []
        flat = [part for pair in parts for part in (pair if isinstance(pair, tuple) else (pair,))]
        found = counted[id(node)] = 1 + sum(_count(part, counted, where) for part in flat)
    if found >= MOST_VALUES:
        raise UserError(
            f"{where}: expected at most {MOST_VALUES:,} values, found aliases (*name) that stand"
            " for more; write them out"
        )
    return found


def _refuse_huge_numbers(values: Any, where: str) -> None:
    """Raise UserError for a whole number that no setting is, and that Python itself would not
    print.
    """
    if isinstance(values, dict):
        for key, inner in values.items():
            _refuse_huge_numbers(key, where)
            _refuse_huge_numbers(inner, where)
    elif isinstance(values, list | tuple | set):
        for inner in values:
            _refuse_huge_numbers(inner, where)
    elif isinstance(values, int) and values.bit_length() > MOST_BITS:
        raise UserError(
            f"{where}: expected whole numbers of at most {MOST_BITS} bits, found one of"
            f" {values.bit_length():,}; mend it"
        )


def write_commented(path: Path, values: dict[str, Any], files: Sequence[Path], head: str) -> None:
    """Write plain values under a head of comment, with the layout and comments of files that are
    laid one over the other, and as DVC would: `dvc exp run -S` then changes a line.
    """
    layout = YAML()
    document, *over = [layout.load(file) for file in files]
    for file in over:
        _lay_commented(document, file)
    _lay_values(document, values, set())
    document.yaml_set_start_comment(head)
    with writing(path) as out:
        layout.dump(document, out)


def _lay_commented(base: CommentedMap, over: CommentedMap) -> None:
    """Lay a profile's values and comments over those of the profiles before it, in place."""
    for key, part in over.items():
        if isinstance(part, CommentedMap) and isinstance(base.get(key), CommentedMap):
            _lay_commented(base[key], part)
        elif key != "defaults":
            base[key] = part
            words = over.ca.items.get(key, [None] * 3)[2]
            if words and words.value.startswith("#"):
                there = base.ca.items.setdefault(key, [None] * 4)
                after = there[2].value.partition("\n")[2] if there[2] else ""  # empty lines below
                words.value = words.value.partition("\n")[0] + "\n" + after
                there[2] = words


def _lay_values(document: CommentedMap, values: dict[str, Any], laid: set[int]) -> None:
    """Make a document say `values` and no more, with its comments and its layout, in place. `laid`:
    the parts, by id, that other places name by an alias and that say already what they should.
    """
    for key in set(document) - set(values):
        del document[key]
    for key, value in values.items():
        part = document.get(key)
        if isinstance(part, CommentedMap) and value and id(part) not in laid:
            if part.anchor.value:
                laid.add(id(part))
            _lay_values(part, value, laid)
        elif isinstance(value, list):
            document[key] = value  # DVC writes lists so, an item a line
        elif part != value or key not in document:
            document[key] = value
            if isinstance(value, dict):
                document[key] = CommentedMap(value)
                document[key].fa.set_flow_style()
