"""Input tables of the SQL layer that are no planes: what the store knows beside the runs themselves.

They are declared like planes and loaded beside them. In a store they live as Parquet under ``tables/<name>/``; the
commands that work on loose bundles fill them in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..recorder.columns import FLOAT
from ..recorder.planes import BOOL, INT, STRING, Column, Plane


def _col(name: str, type_: object, doc: str, *, null: bool = False, unit: str | None = None) -> Column:
    return Column(name, type_, doc, nullable=null, unit=unit)


_PATTERN = "LIKE pattern, letter case ignored, over"

_DECLARED = (
    Plane(
        "bundles",
        "One published bundle of the store.",
        (
            _col("run_id", STRING, "Run id the manifest names."),
            _col("bundle", STRING, "Path of the bundle."),
            _col("manifest_sha256", STRING, "64 hex digits over the bytes of bundle.json."),
            _col("files", INT, "Number of files the manifest declares.", unit="count"),
            _col("bytes", INT, "Sum of the declared file sizes.", unit="bytes"),
        ),
    ),
    Plane(
        "comparisons",
        "One comparison by name. Its runs are in cohort_members; one without any run has a row here alone.",
        (_col("comparison_id", STRING, "Name of the comparison."),),
    ),
    Plane(
        "cohort_members",
        "One run of one cohort of one comparison.",
        (
            _col("comparison_id", STRING, "Name of the comparison."),
            _col("cohort", STRING, "baseline or candidate."),
            _col("position", INT, "Input order inside the cohort, from 0."),
            _col("run_id", STRING, "The run."),
            _col("verified", BOOL, "The run was read from a deeply verified bundle."),
            _col("receipt_run_id", STRING, "Run id of the verification receipt; NULL without a receipt.", null=True),
            _col("manifest_sha256", STRING, "Digest of the receipt; NULL without a receipt.", null=True),
        ),
    ),
    Plane(
        "campaign_planned",
        "One planned capture of one campaign.",
        (
            _col("campaign_id", STRING, "The campaign."),
            _col("entrypoint", STRING, "Entrypoint every capture of the campaign must have."),
            _col("position", INT, "Order in the manifest, from 0."),
            _col("capture_step", INT, "Planned capture step."),
            _col("bundle", STRING, "Bundle path as the manifest names it, or the store's path for a planned run id."),
            _col("run_id", STRING, "Planned run id; NULL when the manifest plans a bundle path only.", null=True),
        ),
    ),
    Plane(
        "bundle_checks",
        "What reading one planned bundle found; a planned bundle without a row does not exist.",
        (
            _col("campaign_id", STRING, "The campaign."),
            _col("bundle", STRING, "Bundle path as in campaign_planned."),
            _col("run_id", STRING, "Run id of the bundle; NULL when it could not be read.", null=True),
            _col("manifest_sha256", STRING, "Digest of the manifest; NULL when verification failed.", null=True),
            _col("message", STRING, "Why deep verification or reading failed; NULL when it held.", null=True),
        ),
    ),
    Plane(
        "comparison_nights",
        "What one night found of one comparison of a campaign; nights count only when their runs differ.",
        (
            _col("campaign_id", STRING, "The campaign."),
            _col("comparison_id", STRING, "Name of the comparison."),
            _col("night", INT, "Number of the night, from 1."),
            _col("recorded_at", STRING, "When it was recorded, in UTC."),
            _col("runs_sha256", STRING, "Digest over the runs of both cohorts and the rule of the verdict."),
            _col("verdict", STRING, "Verdict of the night."),
            _col("baseline_implementation_id", STRING, "Implementation of the baseline; NULL: not one.", null=True),
            _col("candidate_implementation_id", STRING, "Implementation of the candidate; NULL: not one.", null=True),
            _col("baseline_median_ns", FLOAT, "Median of the baseline; NULL without runs.", null=True, unit="ns"),
            _col("candidate_median_ns", FLOAT, "Median of the candidate; NULL without runs.", null=True, unit="ns"),
            _col("lower_delta_ns", FLOAT, "Lower bound of the interval; NULL: none.", null=True, unit="ns"),
            _col("upper_delta_ns", FLOAT, "Upper bound of the interval; NULL: none.", null=True, unit="ns"),
        ),
    ),
    Plane(
        "device_classes",
        "One rule that gives device work its class; the first rule that matches decides. Any row here takes the place"
        " of all the built-in rules, which device_class_rules shows.",
        (
            _col("priority", INT, "Rules are asked in this order, smallest first."),
            _col("category", STRING, f"{_PATTERN} device_intervals.category; NULL matches all.", null=True),
            _col("name", STRING, f"{_PATTERN} device_intervals.name; NULL matches all.", null=True),
            _col("class", STRING, "The class, e.g. compute; views know compute, communication, memcpy and memset."),
        ),
    ),
    Plane(
        "step_markers",
        "One rule that tells which spans mark a step. Any row here takes the place of all the built-in rules, which"
        " step_marker_rules shows.",
        (
            _col("name", STRING, f"{_PATTERN} spans.name."),
            _col("category", STRING, f"{_PATTERN} spans.category; NULL matches all.", null=True),
        ),
    ),
)

TABLES: Mapping[str, Plane] = MappingProxyType({table.name: table for table in _DECLARED})
"""Every input table by name."""
