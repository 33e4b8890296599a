-- Time up to which traces of the given clusters belong to incidents that are over.
SELECT org_id, cluster_id, toUnixTimestamp64Milli(max(until_at)) AS until_ms
FROM incidents FINAL
WHERE /*include incidents/pairs.sql*/ AND status = 'resolved'
GROUP BY org_id, cluster_id
