"""Whether the rules of a report were fixed before the run: what each pre-training recorded of
them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpt1.base.files import read_json
from gpt1.params.recipes import pretraining_of, pretraining_stage
from gpt1.params.schema import Params
from gpt1.results.captions import reading
from gpt1.results.rules import RULES_RECORD, rules_hash
from gpt1.results.training import networks

FIXED, POST_HOC, NOT_RECORDED = "fixed before the run", "post hoc", "not recorded"
SHORT = 8  # digits of a hash for a reader


@dataclass(frozen=True)
class Registration:
    """The hash of the rules that verdicts are by, and the one that each pre-training recorded, by
    name; None for one that recorded none.
    """

    rules: str
    recorded: Mapping[str, str | None]

    @property
    def word(self) -> str:
        """FIXED, POST_HOC or NOT_RECORDED."""
        if {*self.recorded.values()} - {self.rules, None}:
            return POST_HOC
        return NOT_RECORDED if None in self.recorded.values() else FIXED

    @property
    def in_words(self) -> str:
        """The same in a sentence, with short hashes."""
        ours = self.rules[:SHORT]
        if self.word == FIXED:
            return f"Rules {ours}, fixed before the run: every pre-training recorded them."
        if self.word == POST_HOC:
            others = sorted(
                {one for one in self.recorded.values() if one not in (self.rules, None)}
            )
            names = [name for name, one in self.recorded.items() if one in others]
            theirs = _all([str(one)[:SHORT] for one in others])
            return (
                f"Post hoc: these verdicts are by rules {ours}, and pre-training"
                f" ({_all(names)}) recorded {theirs}. They were not fixed before the run."
            )
        names = [name for name, one in self.recorded.items() if one is None]
        return (
            f"Not recorded: nothing shows that rules {ours} were fixed before the run, for the"
            f" weights of {_all(names)} were made elsewhere, or before rules were recorded."
        )


def _all(names: Iterable[str]) -> str:
    return " and ".join(names)


def registration(params: Params) -> Registration:
    """What the pre-trainings of a run recorded. Raises UserError where a summary is missing or
    broken.
    """
    recorded: dict[str, str | None] = {}
    for network in networks(params):
        for seed in params.pretrain.seeds:
            path = pretraining_of(params, network, seed) / "summary.json"
            with reading(path, pretraining_stage(params, network, seed), "an object"):
                found = read_json(path).get(RULES_RECORD)
            recorded[f"{network}, seed {seed}"] = None if found is None else str(found)
    return Registration(rules_hash(), recorded)
