-- White_Space of the Unicode standard; the separators U+001C to U+001F are not in it, whatever a language's trim says.
CREATE OR REPLACE MACRO is_blank(text_value) AS regexp_full_match(
    text_value,
    '[\x09-\x0D\x20\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}]*'
);

COMMENT ON MACRO is_blank IS 'True when a text is empty or all Unicode White_Space; NULL for NULL.';
