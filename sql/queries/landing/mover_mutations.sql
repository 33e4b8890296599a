-- Unfinished mutations of a text mover, known by a text in their commands.
SELECT table, mutation_id, any(latest_fail_reason) AS reason
FROM system.mutations
WHERE database = currentDatabase() AND table IN ('span_texts', 'span_words') AND NOT is_done AND position(command, {mark:String}) > 0
GROUP BY table, mutation_id
