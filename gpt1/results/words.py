"""Numbers in the words of a page: a real sign for less, a fixed number of digits, counts that a
reader can take in.
"""

import re

NONE = "-"
ONE_SEED = "one seed"  # beside every number that rests on no more
MINUS = "−"
BEFORE_DIGITS = re.compile(r"(?<!\w)-(?=\d)")


def number(value: float, form: str = ".1f") -> str:
    """A number for a reader: with the sign for less instead of a hyphen, and no zero below zero."""
    text = f"{value:{form}}"
    if not text.strip("+-0.,"):  # rounds to nothing
        text = f"{0.0:{form}}"
    return text.replace("-", MINUS)


def minus(text: str) -> str:
    """A text of the CSV files with the sign for less in its numbers; hyphens between words stay."""
    return BEFORE_DIGITS.sub(MINUS, text)


def signed(value: float) -> str:
    """A difference in points."""
    return number(value, "+.1f")


def bounds(low: float, high: float, form: str = ".1f") -> str:
    """An interval: 4.0 to 5.5."""
    return f"{number(low, form)} to {number(high, form)}"


def spread(mean: float, deviation: float | None) -> str:
    """A mean and its deviation."""
    return number(mean) if deviation is None else f"{number(mean)} ± {number(deviation)}"


def counted(count: int, word: str) -> str:
    """1 seed, 2 seeds."""
    return f"{count:,} {word}{'s' if count != 1 else ''}"


def alone(seeds: int) -> str:
    """What stands behind an interval of so many seeds: that there is but one, else nothing."""
    return f", {ONE_SEED}" if seeds == 1 else ""


def large(count: int) -> str:
    """A count that a reader can take in: 12.3 M, or all its digits below a million."""
    return (
        f"{count / 1e9:.2f} G"
        if count >= 1e9
        else f"{count / 1e6:.1f} M"
        if count >= 1e6
        else f"{count:,}"
    )
