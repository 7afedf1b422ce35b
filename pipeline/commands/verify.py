"""``planewise verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...recorder.errors import PlanewiseError
from ..bundle import refuse_output_inside_bundle, verify_bundle, verify_semantic
from ..output import OutputFormat, Rows, write_document, write_rows
from .options import format_option, note, output_option

COLUMNS = ("bundle", "verified", "run_id", "files_verified", "bytes_verified", "semantic", "message")


@click.command()
@click.argument("bundles", metavar="BUNDLE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--semantic", is_flag=True, help="Also rebuild evidence and report from the planes and require them to be equal."
)
@format_option()
@output_option
def verify(bundles: tuple[Path, ...], semantic: bool, output_format: OutputFormat, output: Path | None) -> int:
    """Check that bundles are exactly what their manifests say, byte for byte.

    Verification is point-in-time and says nothing about the meaning of the files. --semantic adds that evidence.json
    and report.md are what this planewise derives from the planes; evidence made by other views is named as such. It
    does not check that the planes say what the source said, nor what the attachments mean.

    \b
    Example: planewise verify /data/store/bundles/* --semantic
    """
    if output is not None:
        for bundle in bundles:
            refuse_output_inside_bundle(output, bundle)
    rows, codes = [], []
    for bundle in bundles:
        row, code = _verify_one(bundle, semantic)
        rows.append(row)
        codes.append(code)
    if output is not None:
        write_document({"schema": "planewise/verify/1", "bundles": rows}, output)
    write_rows(Rows.of(rows, COLUMNS), output_format)
    note(f"{sum(code == 0 for code in codes)} of {len(codes)} bundles verified")
    return max(codes)


def _verify_one(bundle: Path, semantic: bool) -> tuple[dict[str, Any], int]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row |= {"bundle": str(bundle), "verified": False}
    try:
        receipt = verify_bundle(bundle)
        row |= {"verified": True, **{name: receipt.to_json()[name] for name in COLUMNS[2:5]}}
        if semantic:
            verify_semantic(bundle)
            row["semantic"] = "rederived_match"
    except PlanewiseError as error:
        row["message"] = str(error)
        return row, error.exit_code
    return row, 0
