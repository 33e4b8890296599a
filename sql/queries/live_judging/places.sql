-- Rows at the given log positions.
(log_seq, log_index, log_sub) IN (SELECT p.1, p.2, p.3 FROM (SELECT arrayJoin({places:Array(Tuple(UInt64, UInt32, UInt32))}) AS p))
