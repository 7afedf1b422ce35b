SELECT
    run_id,
    name,
    count(*) AS operations,
    sum(observed_host_duration_ns) AS observed_host_duration_ns
FROM activation_hotspots
GROUP BY run_id, name;

COMMENT ON VIEW activation_name_time IS
'Operations that produce activations, added up by name (protocol 6). Grain: run_id, name; a run without any has no row.';
COMMENT ON COLUMN activation_name_time.run_id IS 'The run.';
COMMENT ON COLUMN activation_name_time.name IS 'Name of the operations.';
COMMENT ON COLUMN activation_name_time.operations IS 'Number of them in activation_hotspots.';
COMMENT ON COLUMN activation_name_time.observed_host_duration_ns IS
'Their host durations in nanoseconds, added up; on an asynchronous device the time to enqueue; NULL when none is known.';
