-- Observations raise a declared coverage to partial and never to complete; none where all was promised breaks the
-- promise (protocol 7.2). A state that the library itself finds unavailable has no source.
CREATE OR REPLACE MACRO _observed_state(declared, observations, source_name, evidence) AS CASE
    WHEN declared = 'complete' AND observations = 0 THEN {
        level: 'invalid', source: source_name,
        reason: 'the producer declared ' || evidence || ' complete, and nothing of it was recorded'
    }
    WHEN declared = 'complete' THEN {
        level: 'complete', source: source_name, reason: 'the producer declared ' || evidence || ' complete'
    }
    WHEN observations = 0 THEN {
        level: 'unavailable', source: 'none',
        reason: CASE declared
            WHEN 'partial' THEN 'the producer declared ' || evidence || ' partial, and nothing of it was recorded'
            ELSE 'the producer neither declared nor recorded ' || evidence
        END
    }
    ELSE {
        level: 'partial', source: source_name,
        reason: CASE declared
            WHEN 'partial' THEN 'the producer declared ' || evidence || ' partial: what was recorded is a sample'
            ELSE evidence || ' was recorded, but its coverage was not declared'
        END
    }
END;

COMMENT ON MACRO _observed_state IS
'State {level, source, reason} of a declared coverage with so many observations (protocol 7.2).';
