"""`gpt1 plan`."""

from pathlib import Path
from typing import Annotated

import typer

from gpt1.commands.options import argument, option

EXAMPLES = """
Examples:

    gpt1 plan                     params.yaml as it is

    gpt1 plan --after             that plan beside what the run then took

    gpt1 plan paper --price 2.5 --price "8 x H100=24"

    gpt1 plan evening --hours 8 --price '1 x H100=2.5'

    gpt1 plan small finetune.epochs=2 --json plan.json
"""


def plan(
    name: Annotated[
        str | None,
        argument("A profile in conf/; params.yaml as it is where none is named."),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        argument("What differs, as key=value with dotted keys."),
    ] = None,
    price: Annotated[
        list[str] | None,
        option(
            "What an hour of every machine costs, or of one: '8 x H100=24'.", metavar="PER_HOUR"
        ),
    ] = None,
    hours: Annotated[
        float | None,
        option(
            "Say for one H100, A100 and RTX 4090 whether the profile fits into so many hours, and"
            " what to cut where it does not.",
            metavar="N",
        ),
    ] = None,
    json: Annotated[Path | None, option("Write it as JSON too.", metavar="FILE")] = None,
    after: Annotated[
        bool,
        typer.Option(
            "--after", help="The last plan of params.yaml beside what its stages took since."
        ),
    ] = False,
    measure: Annotated[
        bool, typer.Option(help="Measure a few updates of each network here, for some 20 s.")
    ] = True,
    brief: Annotated[
        bool, typer.Option("--brief", help="Say in one line how long the run takes here.")
    ] = False,
) -> None:
    """Say what a run will take, here and on machines by name: updates, tokens, time, memory, disk,
    energy, cost; and which effects it could confirm. Runs nothing.
    """
    from gpt1.pipeline.plan.plan import plan_and_show
    from gpt1.pipeline.plan.table import show_after
    from gpt1.results.detectable import detectable_effects, lines_of
    from gpt1.results.rules import read_rules

    if after:
        show_after(json)
        return
    params, fresh = plan_and_show(name, overrides or [], price or [], json, measure, brief, hours)
    if not brief:
        rules = read_rules()
        found = detectable_effects(params, rules, fresh)
        print("\n".join(lines_of(found, params, rules.least_seeds)))
