-- Hashed: the domain, one NUL byte, then for each entry its root, key and family, each as a length in bytes (8 bytes,
-- little-endian) and the UTF-8 bytes. The input is put together as hex text, which is linear in its size; joining
-- BLOBs one by one would not be. A text is shorter than 2^32 bytes, so the upper half of a length is zero.
CREATE OR REPLACE MACRO _gradient_manifest_sha256(expected) AS 'sha256:' || sha256(unhex(
    hex(encode('candle-graph/gradient-manifest/1')) || '00' || array_to_string(
        list_transform(
            flatten(list_transform(expected, lambda entry: [entry.root, entry.key, entry.family])),
            lambda part: printf(
                '%02x%02x%02x%02x00000000',
                strlen(part) & 255, (strlen(part) >> 8) & 255, (strlen(part) >> 16) & 255, (strlen(part) >> 24) & 255
            ) || hex(encode(part))
        ),
        ''
    )
));

COMMENT ON MACRO _gradient_manifest_sha256 IS
'Digest of an ordered gradient manifest as sha256: and 64 lowercase hex digits (protocol 2.4); families'' rules are not hashed.';
