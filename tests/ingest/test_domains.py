"""The typed gate and the column rules speak the recorder's vocabularies, and no others."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from planewise.ingest import run_metadata, trace_events
from planewise.ingest.domains import VOCABULARIES
from planewise.ingest.trace_tables import PLANE_OF
from planewise.recorder import vocabulary
from planewise.recorder.planes import PLANES


def literals(kind: Any) -> set[str]:
    """Every text in the Literals of an annotation."""
    arguments = get_args(kind)
    return {item for part in arguments for item in ({part} if isinstance(part, str) else literals(part))}


def annotation(struct: type, field: str) -> Any:
    from msgspec.structs import fields

    return next(item.type for item in fields(struct) if item.name == field)


@pytest.mark.parametrize(
    ("struct", "field", "words"),
    [
        (trace_events.SpanStart, "span_kind", vocabulary.SpanKind),
        (trace_events.SpanStart, "step", vocabulary.ExecutionStep),
        (trace_events.Tensor, "category", vocabulary.MemoryCategory),
        (trace_events.Memory, "category", vocabulary.MemoryCategory),
        (trace_events.Gradient, "state", vocabulary.GradientState),
        (trace_events.Edge, "edge_kind", vocabulary.EdgeKind),
        (trace_events.Terminal, "outcome", vocabulary.Outcome),
        (run_metadata.RunMetadata, "phase", vocabulary.Phase),
        (run_metadata.RunMetadata, "timing_mode", vocabulary.TimingMode),
        (run_metadata.CaptureContract, "measurement_scope", vocabulary.MeasurementScope),
        (run_metadata.CaptureContract, "operations", vocabulary.CoverageLevel),
        (run_metadata.GradientFamily, "expectation", vocabulary.GradientExpectation),
    ],
)
def test_typed_values_are_the_recorders_vocabulary(struct, field, words):
    assert literals(annotation(struct, field)) == {word.value for word in words}


def test_column_vocabularies_name_real_columns():
    for plane, column in VOCABULARIES:
        assert column in PLANES[plane].column_names


def test_record_fields_are_columns_of_their_plane():
    for kind, plane in PLANE_OF.items():
        assert set(kind.__struct_fields__) <= set(PLANES[plane].column_names), plane
