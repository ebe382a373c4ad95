"""Numbers as a person says them."""

UNITS = (("years", 365.25 * 86400), ("days", 86400), ("h", 3600), ("min", 60))
PREFIXES = (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))


def duration(seconds: float) -> str:
    """Seconds in the largest unit of which there are two."""
    for unit, size in UNITS:
        if seconds >= 1.95 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def number(value: float) -> str:
    """A large number in three digits: 1.05 G."""
    for letter, size in PREFIXES:
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}" if value else "-"
