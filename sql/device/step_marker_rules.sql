SELECT name, category FROM step_markers
UNION ALL
SELECT name, category
FROM _default_step_markers
WHERE NOT EXISTS (FROM step_markers);

COMMENT ON VIEW step_marker_rules IS
'The rules in force that tell which spans mark a step: the rows of step_markers, or the built-in ones while that table is empty. Grain: one rule.';
COMMENT ON COLUMN step_marker_rules.name IS
'LIKE pattern, letter case ignored, a backslash escapes, over spans.name.';
COMMENT ON COLUMN step_marker_rules.category IS
'LIKE pattern over spans.category likewise; NULL matches all, a pattern never matches NULL.';
