-- Calls of a prompt by version, the last used first, and in the first row those of all versions.
-- Calls that name no version have the version ''.
SELECT grouping(prompt_version) AS is_total, prompt_version AS version, uniqExact(prompt_version) AS versions,
  count() AS calls, countIf(outcome != 'success') AS failed, sum(input_tokens) AS tokens_in, sum(output_tokens) AS tokens_out,
  toString(sum(cost_usd)) AS cost, quantilesTDigest(0.5, 0.95)(greatest(0, dateDiff('millisecond', started_at, ended_at))) AS quantiles,
  toUnixTimestamp64Milli(min(started_at)) AS first_ms, toUnixTimestamp64Milli(max(started_at)) AS last_ms
FROM spans
WHERE /*include prompts/calls.sql*/
GROUP BY GROUPING SETS ((prompt_version), ())
HAVING calls > 0
ORDER BY is_total DESC, last_ms DESC, version
LIMIT {rows:UInt32}
