"""All YAML goes through here: YAML 1.2, so that 1e-3 is a number, and written as DVC writes it."""

import json
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.tokens import AliasToken

from gpt1.base.errors import ELSEWHERE, UserError
from gpt1.base.files import writing

MOST_ALIASES = 8
HEAD = "Edit it, or compose it anew. What each value means and comes from: conf/paper.yaml."


def read_yaml(path: Path) -> Any:
    """Read plain values from a file. Raises UserError."""
    try:
        text = path.read_text(encoding="utf-8").removeprefix("\ufeff")
    except FileNotFoundError:
        raise UserError(f"no {path} in {Path.cwd()}: gpt1 profile makes it; {ELSEWHERE}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: expected YAML in UTF-8, found {error}; correct it") from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, where: str = "the text") -> Any:
    """Parse YAML 1.2. Raises UserError for other text, or too many aliases."""
    reader = YAML(typ="safe", pure=True)
    try:
        if "*" in text:
            if sum(isinstance(token, AliasToken) for token in reader.scan(text)) > MOST_ALIASES:
                raise ValueError(f"more than {MOST_ALIASES} aliases (*name): write values out")
            json.dumps(reader.load(text), default=str)  # refuses an alias within its own anchor
        return reader.load(text)
    except Exception as error:  # also what int(), datetime and deep nesting raise
        why = error or type(error).__name__
        raise UserError(f"{where} is not YAML: {why}; correct it") from None


def write_yaml(path: Path, values: dict[str, Any], composed_by: str) -> None:
    """Write plain values below a line that says who composed them."""
    with writing(path) as file:
        file.write(f"# Composed by: {composed_by}\n# {HEAD}\n")
        YAML().dump(values, file)
