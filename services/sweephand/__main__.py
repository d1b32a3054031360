"""Run the command line with `python -m sweephand`."""

from sweephand.cli import main

main(prog_name="sweephand")
