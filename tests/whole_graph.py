"""`python -m whole_graph` in a checkout: every stage of dvc.yaml by its own words, in the graph's order,
in one process: no start of DVC and torch for each. unwatched.json then names, by stage, what it read
of params.yaml that DVC does not watch for it; what goes to a log is no reading.
"""

import json
import runpy
import sys
from pathlib import Path

from dvc.dependency import ParamsDependency
from dvc.repo import Repo
from networkx import dfs_postorder_nodes

from gpt1.params import schema

READ, plain = set(), schema.read_params
dump = schema.Section.model_dump


class Rows(dict):
    """Rows of which DVC watches some: to go through them is to read them all."""


for method in ("__iter__", "__len__", "keys", "values", "items"):
    setattr(
        Rows,
        method,
        lambda rows, method=method: READ.add(rows.name) or getattr(dict, method)(rows),
    )


def hide(section, name, watched):
    """Take out of a section what is not watched; its class gives it back, and notes that."""
    hidden = {}
    for field, value in [*section.__dict__.items()]:
        dotted = f"{name}{field}"
        if any(f"{dotted}.".startswith(f"{key}.") for key in watched):
            continue
        if not any(key.startswith(f"{dotted}.") for key in watched):
            hidden[field] = dotted, section.__dict__.pop(field)
        elif isinstance(value, schema.Section):
            hide(value, f"{dotted}.", watched)
        else:
            section.__dict__[field] = rows = Rows(value)
            rows.name = dotted
            for key, row in dict.items(rows):
                hide(row, f"{dotted}.{key}.", watched)
    object.__setattr__(section, "__pydantic_private__", {"hidden": hidden})


def hidden_of(section):
    return (section.__pydantic_private__ or {}).get("hidden", {})


def give_back(section, field):
    if field not in type(section).model_fields:
        raise AttributeError(field)
    dotted, value = hidden_of(section)[field]
    if "/gpt1/tracking/" not in sys._getframe(1).f_code.co_filename:
        READ.add(dotted)
    return value


def dumped(section, exclude=(), **options):
    READ.update(dotted for field, (dotted, _) in hidden_of(section).items() if field not in exclude)
    return dump(section, exclude=set(exclude), **options)


def main():
    schema.Section.__getattr__, schema.Section.model_dump = give_back, dumped
    unwatched = {}
    for stage in dfs_postorder_nodes(Repo().index.graph):
        watched = [dep.params for dep in stage.deps if isinstance(dep, ParamsDependency)]

        def read_params(*path, watched=watched):
            params = plain(*path)
            if [] not in watched:  # or else the whole file is watched
                hide(params, "", [key for keys in watched for key in keys])
            return params

        for module in [*sys.modules.values()]:
            if module.__name__.startswith("gpt1.") and hasattr(module, "read_params"):
                module.read_params = read_params
        READ.clear()
        sys.argv = stage.cmd.split()[2:]
        runpy.run_module("gpt1.stages", run_name="__main__")
        unwatched[stage.addressing] = sorted(READ - {"pretrain.checkpoint_minutes"})  # no result
    Path("unwatched.json").write_text(json.dumps(unwatched))


if __name__ == "__main__":
    main()
