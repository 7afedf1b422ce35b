-- Communication is asked by name before anything else is asked by category: every profiler files a collective as a
-- kernel. A name alone classifies only what no category did.
SELECT priority, category, name, class
FROM (VALUES
    (10, NULL, '%nccl%', 'communication'),
    (10, NULL, '%rccl%', 'communication'),
    (10, NULL, '%hccl%', 'communication'),
    (10, NULL, 'hcom\_%', 'communication'),
    (10, NULL, '%oneccl%', 'communication'),
    (10, NULL, '%msccl%', 'communication'),
    (10, NULL, '%nvshmem%', 'communication'),
    (20, '%hccl%', NULL, 'communication'),
    (20, '%communication%', NULL, 'communication'),
    (30, 'mtia\_ccp\_events', 'dma\_%', 'memcpy'),
    (30, '%memcpy%', NULL, 'memcpy'),
    (30, '%memset%', NULL, 'memset'),
    (40, '%kernel%', NULL, 'compute'),
    (40, 'mtia\_ccp\_events', NULL, 'compute'),
    (40, 'AI\_CORE', NULL, 'compute'),
    (40, 'AI\_VECTOR\_CORE', NULL, 'compute'),
    (40, 'AI\_CPU', NULL, 'compute'),
    (40, 'MIX\_AI_', NULL, 'compute'),
    (50, NULL, '%memcpy%', 'memcpy'),
    (50, NULL, '%memset%', 'memset')
) AS rules (priority, category, name, class);

COMMENT ON VIEW _default_device_classes IS
'The built-in rules that give device work its class. Grain: priority, category, name.';
COMMENT ON COLUMN _default_device_classes.priority IS 'Rules are asked in this order, smallest first.';
COMMENT ON COLUMN _default_device_classes.category IS
'LIKE pattern, letter case ignored, a backslash escapes, over device_intervals.category; NULL matches all.';
COMMENT ON COLUMN _default_device_classes.name IS
'LIKE pattern, letter case ignored, a backslash escapes, over device_intervals.name; NULL matches all.';
COMMENT ON COLUMN _default_device_classes.class IS 'The class: compute, communication, memcpy or memset.';
