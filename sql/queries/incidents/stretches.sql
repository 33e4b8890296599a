-- Times at which traces of the given clusters failed, each cluster from its own instant on: for
-- each minute the first five times and the last. Further times of a minute change neither where
-- five failures first lie within a quarter of an hour, nor where half an hour has none.
SELECT org_id, cluster_id, groupArraySorted(5)(at_ms) AS first_ms, max(at_ms) AS last_ms
FROM (
  SELECT t.org_id AS org_id, t.cluster_id AS cluster_id, t.trace_key AS trace_key, min(toUnixTimestamp64Milli(t.at)) AS at_ms
  FROM (SELECT org_id, cluster_id, trace_key, at FROM incident_traces WHERE /*include incidents/pairs.sql*/
      AND at >= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC')) AS t
  INNER JOIN (
    SELECT wanted.1 AS org_id, wanted.2 AS cluster_id, wanted.3 AS from_ms
    FROM (SELECT arrayJoin(arrayZip({orgs:Array(String)}, {clusters:Array(String)}, {froms_ms:Array(Int64)})) AS wanted)
  ) AS w ON t.org_id = w.org_id AND t.cluster_id = w.cluster_id
  WHERE toUnixTimestamp64Milli(t.at) >= w.from_ms
  GROUP BY org_id, cluster_id, trace_key
)
GROUP BY org_id, cluster_id, intDiv(at_ms, 60000)
ORDER BY org_id, cluster_id, last_ms
