"""By what the paper's claims are tested, as rules.yaml fixes it before a run."""

import hashlib
import json
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gpt1.params.strict import validated
from gpt1.params.yaml import read_yaml

RULES = Path(__file__).with_name("rules.yaml")
Test = Literal["above", "every", "size", "at_most", "rises", "varies"]
RULES_RECORD = "rules_sha256"  # in the summary of a pre-training
WITH_MARGIN = ("size", "at_most")


class Strict(BaseModel):
    """A part of rules.yaml: every key known, nothing converted."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class ClaimRule(Strict):
    """A claim: what it says, where the paper says it, and how it is tested."""

    statement: str = Field(min_length=1)
    where: str = Field(min_length=1)
    test: Test
    margin: float | None = Field(None, gt=0)  # points

    @model_validator(mode="after")
    def _margin_where_needed(self) -> Self:
        if (self.margin is None) == (self.test in WITH_MARGIN):
            raise ValueError(
                f"expected a margin for the tests {' and '.join(WITH_MARGIN)} alone, found"
                f" {self.margin} for {self.test} ({self.statement})"
            )
        return self


class Table5Rule(ClaimRule):
    """One about `system` less each of `less` over columns of Table 5."""

    test: Literal["above", "every", "size", "at_most"]
    system: str
    less: tuple[str, ...] = Field(min_length=1)
    columns: str  # of Rules.columns
    opposite: tuple[str, ...] = ()  # columns in which these are the better


class LayersRule(ClaimRule):
    """One about a task by the number of layers transferred."""

    test: Literal["above", "size", "rises"]
    task: str


class ZeroShotRule(ClaimRule):
    """One about a zero-shot behaviour over pre-training, or all of them."""

    test: Literal["above", "every", "rises", "varies"]
    behaviour: str


class Rules(Strict):
    """What stands in rules.yaml, where each entry is explained."""

    level: float = Field(gt=0, lt=0.5)
    least_seeds: int = Field(ge=3)  # gpt1.results.statistics gives no interval of fewer
    least_points: int = Field(ge=4)
    primary: tuple[str, ...] = Field(min_length=1)
    columns: dict[str, tuple[str, ...]]
    table5: dict[str, Table5Rule]
    layers: dict[str, LayersRule]
    zero_shot: dict[str, ZeroShotRule]

    @property
    def keys(self) -> list[str]:
        """Every claim's."""
        return [*self.table5, *self.layers, *self.zero_shot]

    @property
    def exploratory(self) -> list[str]:
        """The keys of the claims that are not primary."""
        return [key for key in self.keys if key not in self.primary]

    @model_validator(mode="after")
    def _what_is_named_is_there(self) -> Self:
        keys = self.keys
        if len(set(keys)) < len(keys):
            raise ValueError("expected every claim once, found one in two sections")
        if unknown := set(self.primary) - set(self.table5):
            raise ValueError(f"primary: expected claims of table5, found {', '.join(unknown)}")
        for key, rule in self.table5.items():
            if rule.columns not in self.columns:
                raise ValueError(
                    f"table5.{key}.columns: expected one of {', '.join(self.columns)}, found"
                    f" {rule.columns}"
                )
            if key in self.primary and rule.test != "above":
                raise ValueError(f"table5.{key}.test: expected above, for a primary claim")
            if not set(rule.opposite) < set(self.columns[rule.columns]):
                raise ValueError(
                    f"table5.{key}.opposite: expected some of the columns {rule.columns}"
                )
        return self


def read_rules(path: Path = RULES) -> Rules:
    """The rules. Raises UserError where the file does not fit."""
    return validated(Rules, read_yaml(path), "", path.name)


def rules_hash(path: Path = RULES) -> str:
    """SHA-256 of the rules as canonical JSON: of what they say, not of how the file is laid out."""
    values = read_rules(path).model_dump(mode="json")
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
