-- Prompts and responses of a whole trace, up to a number of rows from each table. A text is in one
-- of the two tables; while the text mover runs, it may be in both.
SELECT log_seq, log_index, log_sub, prompt, response FROM span_texts WHERE /*include traces/one.sql*/ LIMIT {rows:UInt32}
UNION ALL
SELECT log_seq, log_index, log_sub, prompt, response FROM span_texts_recent WHERE /*include traces/one.sql*/ LIMIT {rows:UInt32}
