-- The same rows as those of facet_described.sql, from one pass over the traces instead of one for each list. It costs less
-- where filters leave few traces: a matching trace costs more than in the passes, but every other row is compared once.
SELECT field, value, sum(sign) AS traces
FROM (
  SELECT sign, arrayJoin(arrayConcat(
      CAST([], 'Array(Tuple(String, String))')
      /*if by_model*/, arrayMap(name -> ('model', toString(name)), models)/*end*/
      /*if by_source_format*/, arrayMap(name -> ('source_format', toString(name)), source_formats)/*end*/
      /*if by_department*/, arrayMap(name -> ('department', toString(name)), departments)/*end*/
      /*if by_realm*/, arrayMap(name -> ('realm', toString(name)), realms)/*end*/
    )) AS listed, listed.1 AS field, listed.2 AS value
  FROM traces
  WHERE /*include traces/filters.sql*/ AND described
)
GROUP BY field, value
HAVING traces > 0
ORDER BY traces DESC, value
LIMIT {rows:UInt32} BY field
SETTINGS /*include settings/cached.sql*/
