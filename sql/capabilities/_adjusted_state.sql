-- The two adjustments of protocol 7.3, in its order: an invalid trace qualifies nothing that hangs on it, and what a
-- capture that did not complete has seen is never all there was. Neither makes a state better or an absent one present.
CREATE OR REPLACE MACRO _adjusted_state(state, trace_schema, structurally_valid, capture_complete) AS CASE
    WHEN NOT structurally_valid AND state.level IN ('partial', 'complete') THEN {
        level: 'invalid', source: trace_schema || ' validation',
        reason: 'the trace is structurally invalid and cannot qualify evidence that hangs on it'
    }
    WHEN NOT capture_complete AND state.level = 'complete' THEN {
        level: 'partial', source: state.source,
        reason: state.reason || '; the capture did not complete, so the observations are diagnostic only'
    }
    ELSE state
END;

COMMENT ON MACRO _adjusted_state IS
'A state {level, source, reason} after the adjustments for invalid traces and captures that did not complete (protocol 7.3).';
