CREATE OR REPLACE MACRO _ratio(a, b) AS
    CASE
        WHEN a = 0 THEN CASE WHEN b = 0 THEN 1.0::DOUBLE END
        WHEN isfinite(b / a) THEN b / a
    END;

COMMENT ON MACRO _ratio IS
'b / a; 1 when both are 0; NULL when only a is 0, when either is NULL, or when the quotient is no finite number (protocol 10.6).';
