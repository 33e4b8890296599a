-- Times at which traces of the given clusters failed, each cluster from its own instant on: for
-- each minute the first five times and the last. Further times of a minute change neither where
-- five failures first lie within a quarter of an hour, nor where half an hour has none.
SELECT org_id, cluster_id, groupArraySorted(5)(at_ms) AS first_ms, max(at_ms) AS last_ms
FROM (
  SELECT org_id, cluster_id, trace_key, min(toUnixTimestamp64Milli(at)) AS at_ms
  FROM incident_traces
  WHERE /*include incidents/pairs.sql*/
    AND at >= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC')
    AND toUnixTimestamp64Milli(at) >= transform(
      concat(org_id, ' ', cluster_id),
      arrayMap((org, cluster) -> concat(org, ' ', cluster), {orgs:Array(String)}, {clusters:Array(String)}),
      {froms_ms:Array(Int64)},
      {from_ms:Int64}
    )
  GROUP BY org_id, cluster_id, trace_key
)
GROUP BY org_id, cluster_id, intDiv(at_ms, 60000)
ORDER BY org_id, cluster_id, last_ms
