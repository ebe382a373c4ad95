"""The replication article of a finished run, in the parts that ReScience C and the ML
Reproducibility Challenge ask for, built of the run's own reports and records.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder, writing
from gpt1.params.schema import Params, read_params
from gpt1.results.article import methods
from gpt1.results.article.latex import latex
from gpt1.results.article.limits import limit_lines, warnings
from gpt1.results.article.reports import picture, report_blocks, require
from gpt1.results.article.verdicts import (
    claim_blocks,
    scope_blocks,
    statistics_blocks,
    threshold_blocks,
)
from gpt1.results.baselines import BASELINE, higher_sentences
from gpt1.results.document import (
    Block,
    Bullets,
    Heading,
    Paragraph,
    Picture,
    counted,
    facts_list,
    markdown,
)
from gpt1.results.packed import is_packed, told_of_packed
from gpt1.results.page.page import gathered
from gpt1.results.paper import TABLE5, TABLES
from gpt1.results.records import read_records
from gpt1.results.table5_baselines import average_sentences

FOLDER = stage_folder("report", "article")
TITLE = "[Re] Improving Language Understanding by Generative Pre-Training"
REPORTS = (*TABLES, TABLE5.name, "claims", "figure2", "curves")
REFERENCES = (
    "A. Radford, K. Narasimhan, T. Salimans, I. Sutskever. Improving Language Understanding by"
    " Generative Pre-Training. OpenAI, 2018. Code: https://github.com/openai/finetune-transformer-lm",
    "B. L. Welch. The generalization of Student's problem when several different population"
    " variances are involved. Biometrika 34, 1947.",
    "S. Holm. A simple sequentially rejective multiple test procedure. Scandinavian Journal of"
    " Statistics 6, 1979.",
    "B. Efron, R. J. Tibshirani. An Introduction to the Bootstrap. Chapman & Hall, 1993 (the"
    " jackknife: chapter 11).",
    "T. Sellam et al. The MultiBERTs: BERT Reproductions for Robustness Analysis. ICLR 2022.",
    "A. Wang et al. GLUE: A Multi-Task Benchmark and Analysis Platform for Natural Language"
    " Understanding. 2018.",
    "J. Devlin, M.-W. Chang, K. Lee, K. Toutanova. BERT: Pre-training of Deep Bidirectional"
    " Transformers for Language Understanding. NAACL 2019.",
)
AUTHORS = "for the authors of the article to write; the run's files do not tell"


def write_article(price: float | None = None, folder: Path = FOLDER) -> dict[str, Any]:
    """Write article.md, article.tex and their pictures, and say where; `price` is of an hour of
    this machine. Of a packed run what it holds is told.

    Raises UserError where params.yaml or a result is missing or cannot be read.
    """
    params = read_params()
    require(REPORTS)
    try:
        told = told_of_packed(params) if is_packed() else gathered(params, price)
        document = article(params, told)
    except UserError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"a result under data/ cannot be read ({type(error).__name__}: {error}); run dvc status"
            " to see which differs from what its stage wrote, and dvc repro -f that stage"
        ) from None
    beside = [
        block._replace(file=PurePath(block.file).name) if isinstance(block, Picture) else block
        for block in document
    ]
    folder.mkdir(parents=True, exist_ok=True)
    for path in (Path(block.file) for block in document if isinstance(block, Picture)):
        for suffix in (".svg", ".png"):
            shutil.copyfile(path.with_suffix(suffix), folder / path.with_suffix(suffix).name)
    written = {"markdown": (folder / "article.md", markdown(beside))}
    written["latex"] = folder / "article.tex", latex(beside)
    for path, text in written.values():
        with writing(path) as file:
            file.write(text)
    return {name: path.as_posix() for name, (path, _) in written.items()}


def article(params: Params, told: Mapping[str, Any]) -> list[Block]:
    """The article of what the page of the run tells (page.gathered). Pictures by their paths."""
    facts, said = dict(told["facts"]), set[str]()
    commands = [line.replace("as it stands below", "of this run") for line in told["commands"]]
    commands.append("gpt1 report --article")
    return [
        Heading(1, TITLE),
        Paragraph(
            f"A replication of Radford et al. (2018): profile {params.profile}, commit"
            f" {dict(told['code'])['Commit']}. `gpt1 report --article` wrote this from the files of"
            " one run; authors, an introduction and a discussion are to be added."
        ),
        *(Paragraph(f"**{text}**") for text in warnings(params, told)),
        *_summary(told, facts),
        *scope_blocks(),
        Heading(2, "Methodology"),
        *_model(params, facts),
        *methods.data_blocks(params, facts["Corpus"], told["sources"]),
        *methods.recipe_blocks(params),
        Heading(3, "What differs from the paper"),
        Bullets(tuple(methods.difference_lines(params))),
        *statistics_blocks(params),
        *methods.computation_blocks(params, told["time"], told["totals"]),
        Heading(3, "Software and machine"),
        facts_list(told["code"]),
        Heading(2, "Results, claim by claim"),
        *claim_blocks(),
        *(block for name in TABLES for block in report_blocks(name, 3, said)),
        *report_blocks(TABLE5.name, 3, said),
        picture(stage_folder("report", TABLE5.name) / "table5.svg"),
        *report_blocks("figure2", 3, said),
        *_beyond(),
        Heading(2, "What this study cannot support"),
        Bullets(tuple(limit_lines(params, told))),
        *threshold_blocks(params),
        Heading(2, "Running it again"),
        Bullets(tuple(f"`{line}`" for line in commands)),
        Heading(2, "References"),
        Bullets(REFERENCES),
    ]


def _summary(told: Mapping[str, Any], facts: Mapping[str, str]) -> Iterator[Block]:
    yield Heading(2, "Reproducibility summary")
    yield facts_list(
        (
            (
                "Scope",
                "the paper's statements about what pre-training, the auxiliary objective, the"
                " Transformer and each transferred layer are worth, about its scores on twelve"
                " tasks, and about zero-shot behaviour; each is listed in the next section.",
            ),
            (
                "Methodology",
                f"an own implementation of the whole recipe, held to numbers of the authors'"
                f" released fine-tuning code. Model: {facts.get('Model', '')}. Corpus:"
                f" {facts.get('Corpus', '')}. Pre-training: {facts.get('Pre-training', '')}."
                f" Fine-tuning: {facts.get('Fine-tuning', '')}. {' '.join(told['totals'][:1])}",
            ),
        )
    )
    yield Paragraph("**Results** of this run:")
    yield Bullets(tuple(told["found"]))
    yield facts_list(
        (
            (
                "What was easy",
                "the released code covers fine-tuning on Story Cloze and gives numbers to hold an"
                " implementation to.",
            ),
            (
                "What was difficult",
                "the corpus is not public, the code of pre-training and of the other tasks was not"
                " released, GLUE's test labels are not public, QNLI was drawn anew since, and"
                " several settings are stated nowhere.",
            ),
            ("Communication with the authors", AUTHORS + "."),
        )
    )


def _model(params: Params, facts: Mapping[str, str]) -> list[Block]:
    curve = stage_folder("report", "curves") / "pretraining.svg"
    return [
        Heading(3, "Model"),
        Paragraph(
            "A Transformer decoder with learned positions, layer norms after each sum and the"
            " approximate GELU, pre-trained to predict the next token and fine-tuned with a linear"
            " layer over the state at the extract symbol, with the language-model objective beside"
            f" it. {facts['Model']}."
        ),
        Paragraph(f"Pre-training: {facts['Pre-training']}. {_seeds(params)}"),
        picture(curve),
    ]


def _seeds(params: Params) -> str:
    """Which pre-trainings there are, and which fine-tuning starts from which."""
    if params.pretrain.source != "train":
        return ""
    seeds = params.pretrain.seeds
    which = (
        f"{counted(len(seeds), 'pre-training')} of each network, seeds {', '.join(map(str, seeds))}"
    )
    if len(seeds) == 1:
        return f"{which.replace('seeds', 'seed')}: every fine-tuning starts from it."
    return f"{which}: fine-tuning seed s starts from pre-training seed s, in every variant."


def _beyond() -> Sequence[Block]:
    records = [one for name in TABLES for one in read_records(name)]
    higher = [*higher_sentences(records), *average_sentences(read_records(TABLE5.name))]
    there = any(one["row"] == BASELINE for one in records)
    none = "is higher than this run's model" if there else "was run"
    return (
        Heading(2, "Beyond the paper"),
        Paragraph(
            "The paper compares with published systems. Where they were run, Tables 2 to 5 have"
            " baselines under ours, on the same rows: the majority class, TF-IDF with logistic"
            " regression, and word vectors of the corpus of pre-training with logistic regression,"
            " tuned on dev; and Table 5 has the embeddings alone. What such a baseline reaches"
            " needs no pre-trained Transformer."
        ),
        Bullets(tuple(higher) or (f"No baseline {none}.",)),
    )
