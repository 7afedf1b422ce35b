SELECT priority, category, name, class FROM device_classes
UNION ALL
SELECT priority, category, name, class
FROM _default_device_classes
WHERE NOT EXISTS (FROM device_classes);

COMMENT ON VIEW device_class_rules IS
'The rules in force that give device work its class: the rows of device_classes, or the built-in ones while that table is empty. Grain: one rule.';
COMMENT ON COLUMN device_class_rules.priority IS
'Rules are asked in this order, smallest first; of two equal ones the class that sorts first decides.';
COMMENT ON COLUMN device_class_rules.category IS
'LIKE pattern, letter case ignored, a backslash escapes, over device_intervals.category; NULL matches all, a pattern never matches NULL.';
COMMENT ON COLUMN device_class_rules.name IS
'LIKE pattern, letter case ignored, a backslash escapes, over device_intervals.name; NULL matches all, a pattern never matches NULL.';
COMMENT ON COLUMN device_class_rules.class IS 'The class that matching work has.';
