"""The report page put together: what lies under data/ becomes one HTML file that needs nothing
beside it. Missing parts are named.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, UndefinedError
from markupsafe import Markup

from gpt1.base.errors import UserError
from gpt1.base.files import read_json, stage_folder, writing
from gpt1.base.units import number
from gpt1.params.recipes import pretraining_seed
from gpt1.params.schema import Params, read_params
from gpt1.results.baselines import higher_sentences
from gpt1.results.captions import caption_facts, made_up
from gpt1.results.document import DOCUMENT, left_out, read_document
from gpt1.results.notes import FEW_SEEDS, INTERVALS
from gpt1.results.page import findings, provenance
from gpt1.results.page.html import figure, html
from gpt1.results.page.sheets import Sheet, SheetCell, ablation_sheet, comparison, invented_titles
from gpt1.results.paper import TABLE5, TABLES
from gpt1.results.records import Record, read_records
from gpt1.results.table5_baselines import average_sentences
from gpt1.results.training import first_of_several
from gpt1.sources.table import is_made_up

INDEX = stage_folder("report", "index.html")
SAMPLES = stage_folder("generate", "samples.json")
PICTURES = {  # by file, what is seen
    "figure2-left.svg": (
        "Figure 2, left: score by the number of layers transferred, from embeddings alone to all;"
        " numbers in the table."
    ),
    "figure2-right.svg": (
        "Figure 2, right: zero-shot performance by pre-training update, Transformer and LSTM;"
        " numbers in the table."
    ),
    "learning-rate.svg": (
        "Learning rate by update of pre-training and of fine-tuning, whole and in the warm-up."
    ),
    "pretraining.svg": (
        "Pre-training loss and gradient norm by update and token, training and held out, of each"
        " network."
    ),
    "parameters.svg": "Parameters by component, a bar a network; numbers in the table.",
}
SAMPLE_TITLES = {
    "bleu": "BLEU",
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "ROUGE-L",
    "meteor": "METEOR",
    "meteor_exact_stem": "METEOR, exact and stem",
}
METRICS = (
    "acc: accuracy; F1: of the class 1; mc: Matthews correlation; pc, sc: Pearson's and Spearman's"
    " correlation"
)
CLAIMS_PICTURE = (
    "Each claim's effect with its interval beside the paper's number; numbers in the table."
)
TABLE5_PICTURE = (
    "Table 5: every system's score with its interval, a group a column; numbers in the table."
)


@dataclass(frozen=True)
class ReportSection:
    """A report on the page: its own tables, a picture, its whole text; `missing` says what to run
    where it is not there.
    """

    name: str
    title: str
    sheets: tuple[Sheet, ...] = ()
    picture: str = ""
    text: str = ""
    left_out: tuple[str, ...] = ()
    missing: str = ""

    @property
    def label(self) -> str:
        """What people call it."""
        return f"Table {self.name[-1]}" if self.name.startswith("table") else self.title


def write_page(path: Path = INDEX) -> dict[str, Any]:
    """Write the page and say where, how large, and what is missing.

    Raises UserError where params.yaml or a result cannot be read.
    """
    params = read_params()
    try:
        told = gathered(params)
        text = rendered(told)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UndefinedError) as error:
        raise UserError(
            f"a result under data/ cannot be read ({type(error).__name__}: {error}); run dvc status"
            " to see which differs from what its stage wrote, and dvc repro -f that stage"
        ) from None
    with writing(path) as file:
        file.write(text)
    return {
        "path": path.as_posix(),
        "bytes": path.stat().st_size,
        "parts_missing": [
            part.name for part in (*told["tables"], *told["others"].values()) if part.missing
        ],
    }


def rendered(told: Mapping[str, Any]) -> str:
    """The page of what `gathered` gives. Equal values give equal bytes."""
    here = Path(__file__).parent
    environment = Environment(
        loader=FileSystemLoader(here),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {"cell": SheetCell, "amount": number}
    style = Markup((here / "page.css").read_text(encoding="utf-8"))  # our own
    return environment.get_template("page.html.j2").render(told, style=style)


def gathered(params: Params) -> dict[str, Any]:
    """Everything on the page, from the files under data/."""
    records = {name: read_records(name) for name in (*TABLES, TABLE5.name, "claims")}
    invented, columns = made_up(params, list(params.tasks)), invented_titles(params)
    taken, code = provenance.stages_taken(), provenance.code_facts()
    tables = [
        part_of(
            name,
            table.title,
            comparison(records[name], columns, f"Table {name[-1]}, ours beside the paper's"),
        )
        for name, table in TABLES.items()
    ]
    tables.append(_ablations(records[TABLE5.name], columns))
    claims = findings.claims_sheet(records["claims"], "Every claim with its verdict")
    others = {
        "claims": part_of("claims", "Claims of the paper", claims, picture=CLAIMS_PICTURE),
        "figure2": part_of("figure2", "Figure 2"),
        "curves": part_of("curves", "Training"),
    }
    first = f"seed-{pretraining_seed(params)}"
    summaries = stage_folder("pretrain").glob(f"*/{first}/summary.json")
    trained = {path.parents[1].name: read_json(path) for path in summaries}
    samples = read_json(SAMPLES) if SAMPLES.is_file() else None
    sentences = (
        findings.claims_sentence(records["claims"]),
        findings.training_sentence(trained, first_of_several(params)),
        *(
            findings.table_sentence(int(name[-1]), records[name], sorted(columns))
            for name in TABLES
        ),
        *higher_sentences([one for name in TABLES for one in records[name]]),
        *average_sentences(records[TABLE5.name]),
        *findings.ablation_sentences(records[TABLE5.name], bool(invented)),
    )
    all_made_up = invented and len(invented) == len(params.tasks)
    return {
        "profile": params.profile,
        "made_up": bool(invented),
        "all_made_up": all_made_up and is_made_up(params.sources["books"].folder),
        "found": list(filter(None, sentences)),
        "facts": _facts(params),
        "intervals": f"{INTERVALS.removeprefix('[low, high]: ')} {FEW_SEEDS}",
        "metrics": METRICS,
        "tables": tables,
        "others": others,
        "trained": trained,
        "samples": samples,
        "sample_titles": sample_titles(samples or {}),
        "left_out": findings.left_out(
            {part.label: part.left_out for part in (*tables, *others.values())},
            records["claims"],
        ),
        "time": provenance.by_stage(taken, "Time by stage") if taken else None,
        "totals": provenance.totals(taken),
        "sources": provenance.sources(),
        "code": code,
        "commands": provenance.commands(dict(code)["Commit"]),
        "params": provenance.PARAMS.read_text(encoding="utf-8"),
    }


def sample_titles(samples: Mapping[str, Any]) -> dict[str, str]:
    """The scores of generated text that are there, by name, with their titles."""
    names = [name for row in samples.get("scores", {}).values() for name in row]
    return {name: SAMPLE_TITLES[name] for name in SAMPLE_TITLES if name in names} | {
        name: SAMPLE_TITLES.get(name, name) for name in names
    }


def part_of(name: str, title: str, *sheets: Sheet, picture: str = "") -> ReportSection:
    """A report by the name of its folder; only words on how to get it where the folder is not
    there.
    """
    folder = stage_folder("report", name)
    if not (folder / DOCUMENT).is_file():
        return ReportSection(name, title, missing=f"gpt1 run {name}")
    document = read_document(folder)
    return ReportSection(
        name,
        title,
        sheets,
        figure(folder / f"{name}.svg", picture) if picture else "",
        html(document, folder, PICTURES, title, with_tables=name != "claims"),
        tuple(left_out(document)),
    )


def _ablations(records: list[Record], invented: set[str]) -> ReportSection:
    lost = "Table 5, what the whole model has over each variant, in points"
    losses = ablation_sheet(records, invented, lost, losses=True)
    scores = ablation_sheet(records, invented, "Table 5, scores with intervals", losses=False)
    sheets = [scores, losses] if len(losses.header) > 1 else [scores]
    return part_of(TABLE5.name, TABLE5.title, *sheets, picture=TABLE5_PICTURE)


def _facts(params: Params) -> list[tuple[str, str]]:
    """How the run was made, in a line a fact; what is missing of it where it is."""
    try:
        facts = [
            fact for fact in caption_facts(params, list(params.tasks), "") if fact[0] != "Beside it"
        ]
    except UserError as error:
        return [("Profile", params.profile), ("Not there yet", str(error))]
    if params.pretrain.source == "train" and (computed := provenance.computation()):
        after = [name for name, _ in facts].index("Pre-training") + 1
        facts.insert(after, ("Its computation", computed))
    return facts
