-- A search reads dl and the repeats of nearly every granule that holds a candidate, in blocks of 8 KiB: taking ZSTD apart was
-- two thirds of its time. LZ4 costs a few bytes a row and is taken apart many times faster.
ALTER TABLE span_texts
  MODIFY COLUMN dl UInt32 CODEC(LZ4),
  MODIFY COLUMN reps Array(UInt32) CODEC(LZ4),
  MODIFY COLUMN stop_reps Array(UInt32) CODEC(LZ4);
