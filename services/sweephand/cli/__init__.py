"""The command line: `sweephand api | worker | dispatcher | migrate | dev | demo`.

Exit codes: 0 all is well, 1 an error said in clear lines, 2 wrong usage.
"""

from sweephand.cli.commands import main

__all__ = ["main"]
