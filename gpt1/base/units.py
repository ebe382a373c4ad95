"""Numbers as a person says them."""

UNITS = (("years", 365.25 * 86400), ("days", 86400), ("h", 3600), ("min", 60))


def duration(seconds: float) -> str:
    """Seconds in the largest unit of which there are two."""
    for unit, size in UNITS:
        if seconds >= 1.95 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
