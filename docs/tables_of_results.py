"""The runs that ship with gpt1 as the README and the pages have them: `demo` and `small`."""

import gpt1.results
from gpt1.base.files import read_json, stage_folder
from gpt1.results.baselines import TITLES
from gpt1.results.document import Grid, bounds, grid, number, read_document
from gpt1.results.runs import RUN, SHIPPED
from gpt1.results.terminal_page import KEPT, kept

FACTS = ("Commit of the pre-training", "Commit", "Machine", "Memory", "Time")


def reference(run: str) -> str:
    """In short: the primary claims with their verdicts, what each system scores on average."""
    scores, _ = gpt1.results.load(f"{SHIPPED.name}/{run}")
    claims = scores[scores["table"] == "claims"]
    primary, others = claims[claims["primary"]], claims[~claims["primary"]]
    rows = [(one.statement, interval(one, "+.1f"), one.verdict) for one in primary.itertuples()]
    counts = others["verdict"].value_counts()
    means = scores[(scores["table"] == "table5") & (scores["column"] == "Avg")]
    means = means[means["row"].isin(["ours", "baseline"]) & (means["value"] == "score")]
    systems = [(title(one.system), interval(one)) for one in means.itertuples()]
    facts = told(run)
    where = f"{facts['Machine']}; {facts['Memory']} of memory. {facts['Time'].partition('. ')[0]}."
    return "\n\n".join(
        (
            where,
            grid(("primary claim", "points, 95 % interval", "verdict"), rows),
            f"The other {len(others)} claims, exploratory: "
            f"{', '.join(f'{count} {verdict}' for verdict, count in counts.items())}.",
            grid(("system", "average of Table 5, 95 % interval"), systems),
        )
    )


def reference_scores(run: str) -> str:
    """Every score of Tables 2 to 4 beside the baselines', every claim, and where it was run."""
    scores, _ = gpt1.results.load(f"{SHIPPED.name}/{run}")
    tables = scores[scores["table"].isin(["table2", "table3", "table4"]) & scores["score"].notna()]
    ours, baselines = (tables[tables["row"] == row] for row in ("ours", "baseline"))
    beside = baselines.set_index(["system", "table", "column", "metric"])["score"]
    systems = list(dict.fromkeys(baselines["system"]))
    measured = ours[ours["metric"] != "mean"]
    missing = float("nan")
    rows = [
        (
            *(one.column, one.metric, interval(one)),
            *(
                number(beside.get((name, one.table, one.column, one.metric), missing))
                for name in systems
            ),
        )
        for one in measured.itertuples()
    ]
    claims = read_document(SHIPPED / run / stage_folder("report", "claims"))
    table = next(kept(block, KEPT["claims"], 0) for block in claims if isinstance(block, Grid))
    facts = told(run)
    return "\n\n".join(
        (
            "\n".join(f"- {name}: {facts[name]}" for name in FACTS if name in facts),
            grid(("task", "metric", "this run", *map(title, systems)), rows),
            grid(table.header, table.rows),
        )
    )


def told(run: str) -> dict[str, str]:
    """What the run says of its machine, commit and time."""
    return dict(read_json(SHIPPED / run / RUN)["facts"])


def title(system: str) -> str:
    """What a reader calls a system."""
    return TITLES.get(system, system)


def interval(one: object, form: str = ".1f") -> str:
    """A score with its interval."""
    score, low, high = (getattr(one, name) for name in ("score", "low", "high"))
    return number(score, form) + ("" if low != low else f" [{bounds(low, high, form)}]")
