"""``planewise report``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click
import duckdb

from ...recorder.errors import UsageError
from ..bundle import refuse_output_inside_bundle
from ..campaign import load_campaign
from ..fsio import write_atomic
from ..inputs import open_input
from ..loose import bundle_connection
from ..nights import last_changes
from ..stores import StorePlace, open_place
from ..untrusted import sql_fault
from .options import StorePath, note


@click.command()
@click.argument("input_path", metavar="[INPUT]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--campaign",
    "campaign_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Campaign manifest; the page is that of its last night in --store, instead of one run's.",
)
@click.option("--store", "store_path", type=StorePath(), envvar="PLANEWISE_STORE", help="Store of the campaign.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="HTML file to write; one that is there is replaced.",
)
def report(input_path: Path | None, campaign_path: Path | None, store_path: StorePlace | None, output: Path) -> int:
    """Write one run, or one campaign, as one HTML page that needs no network.

    INPUT is a published bundle, a capture or a trace. The page says first what may be claimed, then shows host and
    device timelines, live bytes, hottest activations, gradients and gaps; that of a campaign shows what is there, what
    changed, and every comparison with its samples.

    \b
    Examples:
      planewise report store/bundles/RUN --output run.html
      planewise report --campaign campaign.json --store S --output campaign.html
    """
    if (input_path is None) == (campaign_path is None):
        raise UsageError("give either INPUT or --campaign", remedy="see planewise report --help")
    text = _of_run(input_path, output) if input_path is not None else _of_campaign(campaign_path, store_path, output)
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(output, text.encode())
    note(f"wrote {output}: {len(text.encode()) / 1e3:,.0f} kB")
    return 0


def _of_run(input_path: Path, output: Path) -> str:
    from ..pages.run_page import run_page  # Loads the templates.

    refuse_output_inside_bundle(output, input_path)
    with open_input(input_path) as opened:
        return run_page(opened.packet, opened.con)


def _of_campaign(campaign_path: Path | None, store_path: StorePlace | None, output: Path) -> str:
    from ..pages.campaign_data import WALL_TIME_VIEWS, night_documents, wall_times
    from ..pages.campaign_page import campaign_page

    if store_path is None or campaign_path is None:
        raise UsageError("--campaign needs --store", remedy="name the store that nightly ran on")
    campaign = load_campaign(campaign_path)
    store = open_place(store_path)
    status, comparisons, _ = night_documents(store.path, campaign.campaign_id)
    published = [capture for capture in status["captures"] if capture["state"]["state"] == "published"]
    folders = [campaign.base_dir / capture["bundle"] for capture in published]
    with closing(bundle_connection(folders, only=WALL_TIME_VIEWS)) as con:
        try:
            times = wall_times(con, [capture["state"]["run_id"] for capture in published])
        except duckdb.Error as error:
            raise sql_fault(error) from error
    changes = last_changes(store, campaign.campaign_id, [document["name"] for document in comparisons])
    return campaign_page(store.path, campaign, output, times, changes)
