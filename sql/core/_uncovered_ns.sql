-- The union of intervals in one pass: in order of start, each adds what reaches past everything before it. reached_ns
-- is max(end_ns) over the rows before this one; NULL for the first.
--
--   reached  ======|
--   interval    [-----)       adds     |--|
--
-- An interval that begins where the last one ended adds its whole length, so touching intervals need no case of their
-- own (protocol 4.1). Pass end_ns as HUGEINT: start and duration together may reach past 2^63 - 1.
CREATE OR REPLACE MACRO _uncovered_ns(start_ns, end_ns, reached_ns) AS greatest(
    end_ns - greatest(start_ns::HUGEINT, coalesce(reached_ns, start_ns::HUGEINT)), 0::HUGEINT
);

COMMENT ON MACRO _uncovered_ns IS
'Nanoseconds that an interval adds to the union of the intervals sorted before it; the sum over a group is its busy time (protocol 4.1).';
