SELECT name, category
FROM (VALUES ('ProfilerStep#%', NULL::VARCHAR)) AS rules (name, category);

COMMENT ON VIEW _default_step_markers IS 'The built-in rules that tell which spans mark a step. Grain: name, category.';
COMMENT ON COLUMN _default_step_markers.name IS
'LIKE pattern, letter case ignored, a backslash escapes, over spans.name: torch.profiler''s own steps.';
COMMENT ON COLUMN _default_step_markers.category IS 'As name, over spans.category; NULL matches all.';
