-- planewise's own captures and candle-graph's traces state a contract and follow the rules of the protocol. Whatever
-- else was ingested follows the rules of whoever wrote it.
CREATE OR REPLACE MACRO _is_foreign(source_format) AS source_format NOT IN ('capture', 'candle-trace');

COMMENT ON MACRO _is_foreign IS
'True for a source_format that is neither planewise''s own nor candle-graph''s: the rules of the protocol do not judge it.';
