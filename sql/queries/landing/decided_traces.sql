-- Counts of summary and full rows of each trace with rows of these partitions, from a log position of
-- each partition on, and the position of its first full row.
SELECT partition, org_id, trace_id, toString(countIf(NOT sampled)) AS summaries, toString(countIf(sampled)) AS full,
  toString(minIf(log_seq, sampled)) AS seq, argMinIf(log_index, (log_seq, log_index), sampled) AS index
FROM (/*include landing/decided_rows.sql*/)
GROUP BY partition, org_id, trace_id
