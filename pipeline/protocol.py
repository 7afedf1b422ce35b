"""``planewise protocol``: the schema identifiers of everything planewise reads and writes (protocol 13.5)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from ..ingest.base import READERS
from ..recorder.planes import PLANE_VERSION

SCHEMAS: Mapping[str, object] = {
    "capture": "planewise/capture/1",
    "trace_read": ["candle-graph/trace/10", "candle-graph/trace/9"],
    "planes": PLANE_VERSION,
    "evidence": "planewise/evidence/1",
    "bundle": "planewise/bundle/1",
    "bundle_verification": "planewise/bundle-verification/1",
    "publication": "planewise/publication/1",
    "store": "planewise/store/1",
    "results": "planewise/results/1",
    "comparison": "planewise/comparison/1",
    "comparison_family": "planewise/comparison-family/2",
    "campaign": ["planewise/campaign/1", "candle-graph/campaign/1"],
    "campaign_status": "planewise/campaign-status/1",
    "series": "planewise/series/1",
    "overview": "planewise/overview/1",
    "query": "planewise/query/1",
    "verify": "planewise/verify/1",
    "protocol": "planewise/protocol/1",
    "gradient_manifest": "candle-graph/gradient-manifest/1",
}


def protocol_document(commands: Mapping[str, str]) -> dict[str, Any]:
    """The protocol document; ``commands`` maps each command to its one-line help."""
    return {
        "schema": "planewise/protocol/1",
        "tool": {"package": "planewise", "version": version("planewise")},
        "schemas": dict(SCHEMAS),
        "readers": sorted(READERS),
        "commands": [{"name": name, "about": about} for name, about in sorted(commands.items())],
    }
