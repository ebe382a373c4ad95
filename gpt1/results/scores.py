"""From predictions to scores: one row per score and seed."""

import zlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from gpt1.results.intervals import resampled_scores
from gpt1.results.tables import SEEDS, ScoredColumn, columns_of, glue_rows

SCORES = ["table", "system", "task", "column", "metric", "split", *SEEDS, "update", "score", "n"]
SCORES += ["error", "source", "rows"]
TYPES = dict.fromkeys([*SEEDS, "update", "n"], "Int64") | dict.fromkeys(
    ["score", "error"], "float64"
)


def resampled_scores_of(rows: pd.DataFrame, column: ScoredColumn) -> tuple[pd.DataFrame, int]:
    """Return a system's scores x 100 by seed, of all examples, then of each resample, and the
    number of examples. Empty where no labelled row fits the column.
    """
    resampled_parts, examples = [], 0
    for part in column.parts or (None,):
        part_rows = rows
        if part:
            part_rows = rows[rows["split"].isin([f"dev{part.suffix}", f"test{part.suffix}"])]
            if part.subset is not None:
                part_rows = part_rows[part_rows["subset"] == part.subset]
        part_rows = part_rows[part_rows["label"].notna()]
        if part_rows.empty:
            return pd.DataFrame(), 0
        seeds = [
            (key, answered.sort_values("example"))
            for key, answered in part_rows.groupby(SEEDS, dropna=False)
        ]
        first = seeds[0][1]
        stream = zlib.crc32(f"{column.task}/{first['split'].iloc[0]}".encode())
        resampled = resampled_scores(
            column.metric,
            first["label"].to_numpy(np.float64),
            np.stack([answered["answer"].to_numpy(np.float64) for _, answered in seeds]),
            first["cluster"].to_numpy(),
            stream,
        )
        index = pd.MultiIndex.from_tuples([key for key, _ in seeds], names=SEEDS)
        resampled_parts.append(pd.DataFrame(resampled, index))
        examples += len(first)
    return sum(resampled_parts[1:], resampled_parts[0]) / len(resampled_parts), examples


def scores_of(
    predictions: pd.DataFrame, table: str, sources: Mapping[str, tuple[str, str]] | None = None
) -> pd.DataFrame:
    """Score a table's columns by system and seed. `sources` is {task: (`source`, `rows`)}."""
    rows = list(_rows(predictions, table, sources or {}))
    scores = pd.DataFrame(rows, columns=SCORES)
    if table == "table4":
        scores = pd.concat([scores[scores["table"] == table], glue_rows(scores)], ignore_index=True)
    return scores.reindex(columns=SCORES).astype(TYPES)


def _rows(
    predictions: pd.DataFrame, table: str, sources: Mapping[str, tuple[str, str]]
) -> Iterator[Sequence[object]]:
    columns = [(table, column) for column in columns_of(table)]
    if table == "table4":  # the GLUE score is over tasks of Table 2 too
        columns += [("table2", column) for column in columns_of("table2")]
    groups = predictions.groupby(["task", "system", "update"], dropna=False, sort=False)
    for (task, system, update), group in groups:
        for name, column in columns:
            # a column without parts is of a zero-shot set, which alone is scored by update
            if column.task != task or pd.isna(update) == (not column.parts):
                continue
            resampled, examples = resampled_scores_of(group, column)
            splits = {f"{split}{part.suffix}" for split in ("dev", "test") for part in column.parts}
            scored_splits = (
                split for split in group["split"].unique() if split in splits or not splits
            )
            about = (name, system, task, column.title, column.metric, " ".join(scored_splits))
            source = sources.get(task, ("", ""))
            if not group["label"].notna().any():
                yield (*about, pd.NA, pd.NA, update, np.nan, 0, np.nan, *source)
            for seeds, scores in zip(resampled.index, resampled.to_numpy(), strict=True):
                yield (*about, *seeds, update, scores[0], examples, scores[1:].std(ddof=1), *source)
