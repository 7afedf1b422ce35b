SELECT class, row_number() OVER (ORDER BY class) - 1 AS bit
FROM (SELECT class FROM device_class_rules UNION SELECT 'other');

COMMENT ON VIEW _device_class_bits IS
'Each class as one bit, so that a set of classes is one number; at most 126 classes. Grain: class.';
COMMENT ON COLUMN _device_class_bits.class IS 'The class.';
COMMENT ON COLUMN _device_class_bits.bit IS 'Its bit, from 0 in the order of the names.';
