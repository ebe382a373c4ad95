"""The one exception that a person is meant to read, and the exit statuses that go with it."""

import sys
from collections.abc import Callable

USER_ERROR_STATUS = 2
INTERRUPTED_STATUS = 130


class UserError(Exception):
    """A mistake that a person can mend: says what was expected, what was found and what to do, in one line."""

    def __str__(self) -> str:
        return " ".join(super().__str__().split())


def run_stage(main: Callable[[], None]) -> None:
    """Run a stage's main; a UserError or Ctrl-C ends the process with one line instead of a traceback."""
    try:
        main()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        sys.exit(USER_ERROR_STATUS)
    except KeyboardInterrupt as interrupt:
        print(str(interrupt) or "interrupted: nothing finished was lost; run the same command again to go on",
              file=sys.stderr, flush=True)
        sys.exit(INTERRUPTED_STATUS)
