-- The rules are asked once for each kind of work, not for each interval: a trace repeats few names often.
WITH kinds AS (
    SELECT DISTINCT run_id, category, name FROM device_intervals
)
SELECT
    kinds.run_id,
    kinds.category,
    kinds.name,
    coalesce(min({priority: rules.priority, class: rules.class}).class, 'other') AS class
FROM kinds
LEFT JOIN device_class_rules AS rules
    ON (rules.category IS NULL OR kinds.category ILIKE rules.category ESCAPE '\')
    AND (rules.name IS NULL OR kinds.name ILIKE rules.name ESCAPE '\')
GROUP BY kinds.run_id, kinds.category, kinds.name;

COMMENT ON VIEW _device_kinds IS 'The class of each kind of device work of a run. Grain: run_id, category, name.';
COMMENT ON COLUMN _device_kinds.run_id IS 'The run.';
COMMENT ON COLUMN _device_kinds.category IS 'The source''s own class; NULL when it has none.';
COMMENT ON COLUMN _device_kinds.name IS 'Name of the work; NULL when not recorded.';
COMMENT ON COLUMN _device_kinds.class IS 'Class of the first rule that matches; other when none does.';
