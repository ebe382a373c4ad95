"""The results as data: every number of a report (scores.parquet) and every answer behind it
(predictions.parquet), typed, in one long table each.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder
from gpt1.results.runs import find_run, make_anew

if TYPE_CHECKING:  # pandas and pyarrow take half a second each, which not every command is worth
    import pandas as pd
    import pyarrow as pa

    from gpt1.results.answers import Answers

Record = dict[str, Any]
SCORES, PREDICTIONS = "scores.parquet", "predictions.parquet"
REMOVED = "word_vectors"  # a baseline of earlier versions, which packed runs have
SCORE_TYPES = {  # a report's records leave out what does not apply to them
    "string": (
        "table row system variant network source value panel column task metric split weights"
        " reason claim statement where published unit verdict basis detail rules fixed profile"
        " corpus caption"
    ),
    "double": (
        "score low high sd best median standard_error majority best_evaluation compared_with"
        " difference normalised published_value p"
    ),
    "int64": "x seed seeds examples",
    "bool": "at_chance made_up primary",
    "list<double>": "scores",
    "list<int64>": "flagged_seeds one_class_seeds",
}
PREDICTION_TYPES = {
    "string": "task system split",
    "int64": "pretraining_seed seed example cluster",
    "double": "label",
    "list<float>": "logits",
}
PREDICTION_KEY = ["task", "system", "pretraining_seed", "seed", "split", "example"]
MOST_ROWS = 50_000_000  # of a file; the paper's own tables rest on a tenth of that


def load(run: str | Path = "data/report") -> "tuple[pd.DataFrame, pd.DataFrame]":
    """Every score and every prediction of a run, as two tables of pandas: `scores, predictions`.
    The run is the folder of a checkout, its data/report, a packed run, or the one that ships with
    gpt1, "reference/town".

    Missing values are `pandas.NA`, or NaN among fractions. The number behind a table's cell is in
    one row of `scores`, whose `table` (table2 to table5, figure2, claims), `row` (ours, baseline,
    ours less baseline, paper, paper's model), `system`, `column` and `metric` say which. All scores
    and differences are x 100:

    - `score`: the mean over the seeds; `scores` one by one; `low`, `high` the ends of its 95 %
      interval, missing under three seeds; `sd`, `best`, `median` over the seeds; `seeds` how many;
      `seed` which one, in rows of Figure 2 that are of one seed.
    - `split`, `weights`, `examples`: what it was measured on, and by which weights;
      `standard_error`, `majority`, `at_chance`, `flagged_seeds`, `one_class_seeds`: how it stands
      to chance; `best_evaluation`: selected on the rows that it is measured on, so too good.
    - `compared_with`, `difference`: the paper's number where the two compare, and ours less it.
    - `value`, `variant`: in Table 5, a score or "full less variant", and the variant's key; of
      "ours less baseline" the variant is which of ours, and the system which baseline.
    - `panel`, `network`, `x`, `normalised`: in Figure 2; `x` is layers (left) or updates (right),
      `normalised` is 0 at random and 1 at the state of the art.
    - `claim`, `statement`, `where`, `published`, `published_value`, `unit`, `verdict`, `made_up`,
      `basis`, `detail`: of a claim, whose `score` is in its `unit`; `primary`, and its `p`,
      adjusted where it is; `rules`, the hash of the rules that verdicts are by, and whether they
      were `fixed` before the run, or are post hoc.
    - `source`, `reason` (for no score), `profile`, `corpus`, `caption`: what to know of it.

    `predictions` has a row for each example and seed of what the tables score, test by the weights
    chosen on dev, dev by the last: `task`; `system` (full, a variant, layers-<n> transferred, or a
    baseline: majority, tfidf, whose one fit is seed 0); `pretraining_seed` (NA
    without our pre-training); `seed` of the fine-tuning; `split`; `example`, from 0 in the split's
    order; `cluster`, equal for examples that belong together; `label`, a class or STS-B's score
    from 0 to 5; `logits` [classes], before the softmax.

    Raises UserError where the folder has no report, or one that cannot be read.
    """
    import pandas as pd
    import pyarrow as pa

    whole = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    found = find_run(run) or Path(run)
    folder = found / stage_folder("report")
    folder = folder if folder.is_dir() else found
    tables = []
    for name, types in ((SCORES, SCORE_TYPES), (PREDICTIONS, PREDICTION_TYPES)):
        paths = sorted(folder.glob(f"*/{name}"))
        if not paths:
            raise UserError(f"{folder}/*/{name}: expected reports of a run, found none: gpt1 run")
        read = [_table(path, types) for path in paths]
        tables.append(pa.concat_tables(read).to_pandas(types_mapper=whole.get))
    scores, predictions = tables
    return scores, predictions.drop_duplicates(PREDICTION_KEY, ignore_index=True)


def read_records(name: str, folder: Path | None = None) -> list[Record]:
    """The rows of a report's scores.parquet, every column in each, None for what does not apply; []
    where it has not been made. Raises UserError.
    """
    path = (folder or stage_folder("report", name)) / SCORES
    return _table(path, SCORE_TYPES).to_pylist() if path.is_file() else []


def write_scores(folder: Path, records: Sequence[Record]) -> None:
    """Write a report's records. Equal records give equal bytes."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = _schema(SCORE_TYPES)
    unknown = {key for record in records for key in record} - set(schema.names)
    assert not unknown, f"SCORE_TYPES lacks {unknown}"
    parquet.write_table(pa.Table.from_pylist(list(records), schema), folder / SCORES)


def write_predictions(folder: Path, scored: "Iterable[tuple[Answers, Iterable[str]]]") -> None:
    """Write a row an example and seed of a system's splits. Raises UserError where labels or logits
    are missing or broken.
    """
    from pyarrow import parquet

    with parquet.ParquetWriter(folder / PREDICTIONS, _schema(PREDICTION_TYPES)) as writer:
        for answers, splits in scored:
            for split in dict.fromkeys(splits):
                for seed in answers.seeds:
                    writer.write_table(_answered(answers, split, seed))


def pack_predictions(folder: Path, path: Path) -> None:
    """Write every prediction of the reports in a folder once, as small as parquet has it, where
    `load` finds them. Raises UserError.
    """
    import pyarrow as pa
    from pyarrow import parquet

    schema = _schema(PREDICTION_TYPES)
    whole = ("pretraining_seed", "seed", "example", "cluster")
    parquet.write_table(
        pa.Table.from_pandas(load(folder)[1], schema, preserve_index=False),
        path,
        compression="zstd",
        compression_level=19,
        use_dictionary=["task", "system", "split"],
        column_encoding={
            "logits.list.element": "BYTE_STREAM_SPLIT",
            **dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
        },
    )


def _answered(answers: "Answers", split: str, seed: int) -> "pa.Table":
    import numpy as np
    import pyarrow as pa

    labels_n, examples_n = answers.labels(split, None)
    weights = "best" if split.startswith("test") else "last"
    logits_nc = answers.logits(seed, split, weights).astype(np.float32)
    rows, classes = logits_nc.shape
    ends = np.arange(0, rows * classes + 1, classes, dtype=np.int32)
    return pa.table(
        {
            "task": [answers.task] * rows,
            "system": [answers.system] * rows,
            "split": [split] * rows,
            "pretraining_seed": pa.array([answers.pretraining_seeds[seed]] * rows, pa.int64()),
            "seed": np.full(rows, seed),
            "example": examples_n,
            "cluster": answers.clusters(split)[examples_n],
            "label": labels_n.astype(np.float64),
            "logits": pa.ListArray.from_arrays(ends, logits_nc.ravel()),
        },
        _schema(PREDICTION_TYPES),
    )


def _schema(types: dict[str, str]) -> "pa.Schema":
    import pyarrow as pa

    def type_of(name: str) -> Any:
        if name.startswith("list<"):
            return pa.list_(type_of(name[5:-1]))
        return pa.type_for_alias(name)

    return pa.schema([(name, type_of(kind)) for kind in types for name in types[kind].split()])


def _table(path: Path, types: dict[str, str]) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:  # read_table imports pandas, for half a second
            if file.metadata.num_rows > MOST_ROWS:
                raise pa.ArrowException(f"more than {MOST_ROWS:,} rows")
            expected = _schema(types).empty_table()  # with columns that an earlier version lacks
            table = pa.concat_tables([expected, file.read()], promote_options="default")
        gone = pc.equal(table["system"], REMOVED)
        return table.filter(pc.invert(pc.fill_null(gone, False)))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise UserError(f"{path} cannot be read ({error}); {make_anew(path.parent.name)}") from None
