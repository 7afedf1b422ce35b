"""Numbers that a run has once per label, and what must hold before two cohorts are compared by one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_OF_TIME = frozenset({"not_production_equivalent", "unsynchronized_device_region"})
"""Reasons that speak against times alone."""


@dataclass(frozen=True)
class Metric:
    """A number per run and label, and what must hold before it is compared.

    ``query`` gives run_id, label and value; ``excused`` are reasons of a comparison that do not speak against it;
    ``needs`` is a field of the capture contract that has to be ``complete``.
    """

    doc: str
    unit: str
    query: str
    views: tuple[str, ...]
    excused: frozenset[str] = frozenset()
    needs: str | None = None


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "outer_wall_time": Metric(
            "wall time of the measured region",
            "ns",
            "SELECT run_id, 'measured region' AS label, outer_wall_time_ns AS value FROM outer_wall_time",
            ("outer_wall_time",),
        ),
        "host_self_time": Metric(
            "host time of all spans and operations of a name in the measured region, without what runs inside of them",
            "ns",
            "SELECT run_id, label, host_self_time_ns AS value FROM host_label_time",
            ("host_label_time",),
            frozenset({"not_production_equivalent"}),
        ),
        "device_busy": Metric(
            "busy time of a device, named with its clock where it has several",
            "ns",
            "SELECT run_id, device || CASE WHEN count(*) OVER (PARTITION BY run_id, device) = 1 THEN ''"
            " ELSE ' ' || clock_id END AS label, busy_ns AS value FROM device_clock_busy",
            ("device_clock_busy",),
            frozenset({"not_production_equivalent"}),
            "device_timing",
        ),
        "live_bytes_peak": Metric(
            "peak of the live bytes of a device, and over all",
            "bytes",
            "SELECT run_id, coalesce(device, 'all devices') AS label, peak_live_bytes AS value FROM live_bytes_peak",
            ("live_bytes_peak",),
            _OF_TIME,
            "logical_memory",
        ),
        "tensor_rms": Metric(
            "root mean square of a labelled tensor",
            "1",
            "SELECT run_id, label, avg(rms) AS value FROM tensor_stats WHERE non_finite = 0 GROUP BY run_id, label",
            (),
            _OF_TIME,
        ),
    }
)
"""Every metric by name."""
