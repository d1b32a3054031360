"""Insert products whose publication got lost, to watch the sweep mend them: `python -m storefront.stuck --count 5`."""

import click

from storefront.adapters.postgres.engine import postgres_engine
from storefront.adapters.postgres.stuck_publications import insert_stuck_products
from storefront.domain.errors import StorageUnavailableError
from storefront.settings import load_settings
from sweephand import SettingsError


@click.command()
@click.option("--count", default=5, show_default=True, type=click.IntRange(1, 1_000_000), help="How many products.")
def main(count: int) -> None:
    """Insert unpublished products that are past the sweep's grace and have no job, into DATABASE_URL."""
    try:
        ids = insert_stuck_products(postgres_engine(load_settings().database_url), count=count)
    except (SettingsError, StorageUnavailableError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"inserted {count} stuck products, ids {ids[0]} to {ids[-1]}; the next tick of the sweep finds them")


if __name__ == "__main__":
    main()
