-- Linear interpolation between the two order statistics around q * (n - 1) (protocol 10.3), in the protocol's own
-- form: quantile_cont computes lo + (hi - lo) * w, which can differ in the last bit.
CREATE OR REPLACE MACRO _percentile(ordered, q) AS
    CASE
        WHEN len(ordered) = 0 THEN 0.0::DOUBLE
        ELSE
            ordered[floor(q * (len(ordered) - 1))::BIGINT + 1]::DOUBLE
            * (1 - (q * (len(ordered) - 1) - floor(q * (len(ordered) - 1))))
            + ordered[ceil(q * (len(ordered) - 1))::BIGINT + 1]::DOUBLE
            * (q * (len(ordered) - 1) - floor(q * (len(ordered) - 1)))
    END;

COMMENT ON MACRO _percentile IS
'Percentile q (a DOUBLE from 0 to 1) of an ascending list, as a DOUBLE; 0 for an empty list (protocol 10.3).';
