-- Numbers of events and traces of an organization that are stored in full and as summaries. Steps
-- of a chain count with their event; the rows of a trace's pairs cancel out.
SELECT
  e.kept AS kept,
  e.summarised AS summarised,
  t.kept AS traces_kept,
  t.summarised AS traces_summarised
FROM (
  SELECT countIf(sampled) AS kept, countIf(NOT sampled) AS summarised
  FROM spans
  WHERE org_id = {org_id:String}
    AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC') AND started_at < fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')
    AND log_sub = 0
) AS e
CROSS JOIN (
  SELECT sumIf(sign, sampled) AS kept, sumIf(sign, NOT sampled) AS summarised
  FROM traces
  WHERE org_id = {org_id:String}
    AND anchor >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')
    AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC') AND started_at < fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')
) AS t
