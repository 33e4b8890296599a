-- First log position of each given correction of costs in a partition.
SELECT leftPad(lower(hex(correction)), 16, '0') AS hex, toString(min(log_seq)) AS seq
FROM usage_events
WHERE partition = {partition:UInt16} AND correction IN (SELECT reinterpretAsUInt64(reverse(unhex(arrayJoin({corrections:Array(String)})))))
GROUP BY correction
