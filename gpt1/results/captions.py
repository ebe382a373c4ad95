"""What a reader must know before reading a number: how small this run is beside the paper's."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.base.files import read_json, stage_folder
from gpt1.params.recipes import finetune_recipe, pretraining_of, pretraining_stage
from gpt1.params.schema import NetworkName, Params
from gpt1.results.document import Facts, counted, large
from gpt1.results.drawing import NETWORK_TITLES
from gpt1.results.paper import CORPUS, MODEL_SIZE, PAPER_LSTMS, PRETRAINING
from gpt1.results.training import first_of_several
from gpt1.sources.table import is_made_up
from gpt1.tasks.table import TASKS


@contextmanager
def reading(path: Path, stage: str, expected: str = "") -> Iterator[None]:
    """Say in one line what to run where the file that is read within, which `stage` writes, is not
    there or does not hold what is expected of it. Raises UserError.
    """
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"{path} is not there; run dvc repro {stage}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"no {error}" if isinstance(error, KeyError) else str(error)
        found = f": expected {expected}, found something else" if expected else " cannot be read"
        raise UserError(f"{path}{found} ({problem}); run dvc repro -f {stage}") from None


def caption_facts(params: Params, tasks: Sequence[str], measured: str) -> Facts:
    """Facts on these tasks' numbers, ours and the paper's; `measured` says on what data those were.
    Raises UserError where the files of pre-training are missing or broken.
    """
    path = pretraining_of(params, "transformer") / "summary.json"
    with reading(path, pretraining_stage(params, "transformer")):
        summary = read_json(path)
    with reading(path, pretraining_stage(params, "transformer"), "numbers for the caption"):
        updates, parameters = summary["updates"], large(summary["parameters"]["total"])
        trained = (
            f"{counted(updates, 'update')}, {large(summary['tokens'])} tokens"
            if updates
            else "none here, imported weights"
        )
        perplexity = (
            f"{summary['heldout_perplexity']:.1f} a token,"
            f" {summary['heldout_word_perplexity']:.1f} a word"
        )
    which = f" ({one})" if (one := first_of_several(params)) else ""
    perplexity += which
    seeds = sorted({len(finetune_recipe(params, task).seeds) for task in tasks})
    facts = {
        "Profile": f"{params.profile}; not the paper's run unless every line below agrees",
        "Corpus": f"{params.clean.corpus_name}: {_corpus(updates)} (the paper: {CORPUS})",
        "Model": f"{counted(params.model.layers, 'layer')} of width {params.model.width},"
        f" {parameters} parameters (the paper: {MODEL_SIZE})",
        "Pre-training": f"{trained}; held-out perplexity {perplexity} (the paper: {PRETRAINING})",
        "Fine-tuning": f"{' to '.join(map(str, seeds))} seed{'s' if seeds != [1] else ''} a task;"
        f" {rows_used(params, tasks)}",
    }
    if invented := made_up(params, tasks):
        facts["Tasks"] = (
            f"{', '.join(invented)}: made up, in the official file formats; no score on them"
            " compares with the paper's"
        )
    return (*facts.items(), ("Beside it", f"the paper's numbers: {measured}"))


def lstm_fact(params: Params, network: NetworkName) -> tuple[str, str]:
    """An LSTM's size and pre-training. Raises UserError where its files are missing or broken."""
    path = pretraining_of(params, network) / "summary.json"
    beside = pretraining_of(params, "transformer") / "summary.json"
    with reading(beside, pretraining_stage(params, "transformer"), "numbers for the caption"):
        whole = _without_embeddings(read_json(beside)["parameters"])
    with reading(path, pretraining_stage(params, network), "numbers for the caption"):
        summary = read_json(path)
        share = _without_embeddings(summary["parameters"]) / whole
        own = getattr(params, network)
        rate = f" at a rate of its own, {own.learning_rate:g}" if own.learning_rate else ""
        return NETWORK_TITLES[network], (
            f"one layer of {own.units:,} units,"
            f" {large(summary['parameters']['total'])} parameters ({share:.2f} of the"
            f" Transformer's, embeddings apart); {summary['updates']:,} updates{rate},"
            f" {large(summary['tokens'])} tokens; held-out perplexity"
            f" {summary['heldout_perplexity']:.1f} a token,"
            f" {summary['heldout_word_perplexity']:.1f} a word (the paper:"
            f" {PAPER_LSTMS[network]})"
        )


def _without_embeddings(parameters: Mapping[str, int]) -> int:
    """Of a network's parameters by component, `total` among them, those of no embedding."""
    embeddings = [name for name in parameters if name.endswith("_embeddings")]
    return parameters["total"] - sum(parameters[name] for name in embeddings)


def made_up(params: Params, tasks: Sequence[str]) -> list[str]:
    """The titles of those tasks that come from a made-up world."""
    return [TASKS[name].title for name in tasks if is_made_up(params.sources[name].folder)]


def _corpus(updates: int) -> str:
    path = stage_folder("shard", "index.json")
    with reading(path, "shard"):
        train = read_json(path)["splits"]["train"]
    with reading(path, "shard", "numbers for the caption"):
        books = sum("documents" not in book for book in train.get("books", ()))
        documents = int(train.get("documents", 0))
        held = [counted(n, word) for n, word in ((books, "book"), (documents, "document")) if n]
        use = "to train on" if updates else "beside the held-out ones"
        words, tokens = large(train["words"]), large(train["tokens"])
        return f"{' and '.join(held)}, {words} words, {tokens} tokens {use}"


def rows_used(params: Params, tasks: Sequence[str]) -> str:
    """Which of these tasks are tried on a part of their rows."""
    parts = []
    for name in tasks:
        task = params.tasks[name]
        limits = [
            f"{large(rows)} {word}"
            for rows, word in ((task.train_rows, "to train"), (task.eval_rows, "to evaluate"))
            if rows
        ]
        if limits:
            parts.append(f"{TASKS[name].title} {' and '.join(limits)}")
    return f"at most these rows: {'; '.join(parts)}" if parts else "all rows of every task"
