-- Rows of several partitions, of each from a log position of its own on. The least position lets the
-- index skip what is older than all of them.
partition IN {partitions:Array(UInt16)} AND log_seq >= {least:UInt64}
  AND log_seq >= transform(partition, {partitions:Array(UInt16)}, {positions:Array(UInt64)}, toUInt64(0))
