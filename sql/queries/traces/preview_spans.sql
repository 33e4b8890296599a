-- Facts of several traces from their spans: the models, the places of the first and the last model
-- call, and the failed span that ended first. A place is (started_at, log_seq, log_index, log_sub);
-- log_seq 0 stands for none.
SELECT trace_id, arraySort(groupUniqArrayIf(20)(toString(model), model != '')) AS models,
  argMinIf(place, place, kind = 'llm') AS first_call, argMaxIf(place, (ended_at, place), kind = 'llm') AS last_call,
  argMinIf((name, place), (ended_at, place), outcome != 'success').1 AS failed_name, argMinIf(place, (ended_at, place), outcome != 'success') AS failed,
  argMinIf(message, (ended_at, place), outcome != 'success') AS failed_message
FROM (
  SELECT trace_id, model, kind, toString(name) AS name, outcome, ended_at,
    (toUnixTimestamp64Milli(started_at), log_seq, log_index, log_sub) AS place,
    if(outcome = 'success', '', /*include trace/error_text.sql*/) AS message
  FROM spans
  WHERE org_id = {org_id:String}
    AND (/*each ranges with OR*/started_at BETWEEN fromUnixTimestamp64Milli({ranges_from_ms:Int64}, 'UTC') AND fromUnixTimestamp64Milli({ranges_to_ms:Int64}, 'UTC')/*end*/)
    AND trace_key IN (SELECT sipHash64(arrayJoin({trace_ids:Array(String)}))) AND trace_id IN {trace_ids:Array(String)}
)
GROUP BY trace_id
