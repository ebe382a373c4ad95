"""The only YAML: files read as YAML 1.2, so that 1e-3 is a number, and written so that every reader takes them alike."""

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from gpt1.errors import UserError
from gpt1.files import writing


def read_yaml(path: Path) -> Any:
    """Plain values of a YAML 1.2 file (so 1e-3 is a number). Raises UserError where it cannot be read."""
    try:
        return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path} is not there; compose it with gpt1 profile, in the root of the checkout") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    except YAMLError as error:
        raise UserError(f"{path} is not YAML: {' '.join(str(error).split())}") from None


ROWS = ("variants", "sources", "tasks", "ablate", "transfer", "zero_shot")  # sections that are tables


def write_yaml(path: Path, values: Any, comment: str) -> None:
    """Write plain values as YAML that every reader takes alike (1.0e-05, never 1e-05), with `comment` at the top."""
    yaml = YAML(pure=True)
    yaml.width = 200  # a row is a line
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.representer.add_representer(float, _represent_float)
    yaml.representer.add_representer(type(None), lambda representer, _: representer.represent_scalar("tag:yaml.org,2002:null", "null"))
    with writing(path) as file:
        file.write(comment)
        yaml.dump(_flow_rows(values), file)


def _represent_float(representer: Any, value: float) -> Any:
    text = repr(value)
    mantissa, exponent, power = text.partition("e")
    return representer.represent_scalar("tag:yaml.org,2002:float",
                                        f"{mantissa}.0e{power}" if exponent and "." not in mantissa else text)


def _flow_rows(values: dict[str, Any]) -> Any:
    """The same values with lists and the rows of mappings of rows on one line each."""
    def flow(value: Any) -> Any:
        node = CommentedMap(value) if isinstance(value, dict) else CommentedSeq(value)
        node.fa.set_flow_style()
        return node

    rows = {section: {name: flow(row) for name, row in values[section].items()} for section in ROWS if section in values}
    return {name: {key: flow(item) if isinstance(item, list) else item for key, item in section.items()}
                if isinstance(section, dict) else section for name, section in (values | rows).items()}
