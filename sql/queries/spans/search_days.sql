-- Number of documents and words of an organization on each day of the searched time. Whole days
-- come from the projection p_stat; the first and the last day, which may be partial, are counted
-- from their rows.
SELECT toString(toUnixTimestamp(toDateTime(toDate(started_at), 'UTC')) * 1000) AS day_ms, countIf(dl > 0) AS documents, sum(dl) AS words
FROM span_texts
WHERE org_id = {org_id:String} /*if since_day*/AND toDate(started_at) > {since_day:Date}/*end*/ /*if until_day*/AND toDate(started_at) < {until_day:Date}/*end*/
GROUP BY org_id, toDate(started_at)
/*if since_day*/
UNION ALL
SELECT toString(toUnixTimestamp(toDateTime({since_day:Date}, 'UTC')) * 1000) AS day_ms, countIf(dl > 0) AS documents, sum(dl) AS words
FROM span_texts
WHERE org_id = {org_id:String}
  AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC') AND started_at < toDateTime64({since_day:Date} + 1, 3, 'UTC')
  /*if until_ms*/AND started_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')/*end*/
/*end*/
/*if last_day*/
UNION ALL
SELECT toString(toUnixTimestamp(toDateTime({last_day:Date}, 'UTC')) * 1000) AS day_ms, countIf(dl > 0) AS documents, sum(dl) AS words
FROM span_texts
WHERE org_id = {org_id:String}
  AND started_at >= toDateTime64({last_day:Date}, 3, 'UTC') AND started_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')
/*end*/
