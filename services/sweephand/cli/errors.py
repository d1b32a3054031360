"""Say our own errors in clear lines, without a traceback; the one place where they become an exit code."""

import click

from sweephand.model.errors import SweephandError


class ClearErrors(click.Group):
    """A group whose commands end with exit code 1 and a line for each problem when they raise a SweephandError."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except SweephandError as error:
            for line in str(error).splitlines() or [type(error).__name__]:
                click.echo(f"Error: {line}", err=True)
            # Not ctx.exit: `from None` keeps the cause, which may carry a secret, out of any later traceback.
            raise click.exceptions.Exit(1) from None
