-- Search asks postings instead of the engine's text index (ops/adr/0055). A text that can be searched has a document number: its
-- segment (of up to 65,536 documents, which are numbered as they are moved) and its place in the segment. span_words holds, for
-- each word and segment, the places of the documents with the word and how often each has it. Words are known by cityHash64.
--
-- Parts of one segment arrive in several moves; merges append their lists. The partition is that of the documents' texts.
-- A row says nothing by itself: a search believes the documents that span_texts has. So postings are written first, a move that
-- ends half-way leaves places that no document ever gets, and a deleted document is not found from that moment on.
CREATE TABLE IF NOT EXISTS span_words (
  week Date COMMENT 'Week in which the texts are dropped' CODEC(ZSTD(1)),
  word UInt64 COMMENT 'cityHash64 of the word' CODEC(Delta(8), ZSTD(1)),
  segment UInt64 COMMENT 'doc of span_texts without its lower 16 bits' CODEC(Delta(8), ZSTD(1)) STATISTICS(basic),
  places SimpleAggregateFunction(groupArrayArray, Array(UInt16)) COMMENT 'Lower 16 bits of doc, each once' CODEC(Delta(2), ZSTD(1)),
  counts SimpleAggregateFunction(groupArrayArray, Array(UInt16)) COMMENT 'How often the document at the same index has the word, up to 65535' CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY week
ORDER BY (word, segment)
SETTINGS index_granularity = 512, index_granularity_bytes = 1048576, auto_statistics_types = '', fsync_after_insert = 1, fsync_part_directory = 1,
  min_age_to_force_merge_seconds = 3600, min_age_to_force_merge_on_partition_only = 1
COMMENT 'Postings of the search: which documents have a word';
ALTER TABLE span_texts ADD COLUMN IF NOT EXISTS doc UInt64 COMMENT 'Number of the document in the search: 65536 times its segment, and its place; 0 until it can be searched' CODEC(Delta(8), ZSTD(1)) AFTER dl;
-- Search reads documents by number, and counts them by segment.
ALTER TABLE span_texts ADD PROJECTION IF NOT EXISTS p_docs (SELECT org_id, doc, dl, started_at, trace_key ORDER BY org_id, doc) WITH SETTINGS (index_granularity = 2048);
ALTER TABLE span_texts ADD PROJECTION IF NOT EXISTS p_segments (
  SELECT org_id, bitShiftRight(doc, 16), countIf(dl > 0), sum(dl), sum(doc), min(doc), max(doc), min(started_at), max(started_at) GROUP BY org_id, bitShiftRight(doc, 16)
);
-- Moves write neither the words nor their repeats any more. Texts that landed before keep theirs until the pipeline has made postings
-- of them, in the background; until then they are not found.
ALTER TABLE span_texts DROP INDEX IF EXISTS ix_words;
ALTER TABLE span_texts DROP PROJECTION IF EXISTS p_stat;
ALTER TABLE span_texts MODIFY COLUMN words String DEFAULT '' COMMENT 'Words of a text without a document number; empty otherwise' CODEC(ZSTD(1));
ALTER TABLE span_texts
  COMMENT COLUMN reps 'Empty; rows of older versions have hashes of repeated words',
  COMMENT COLUMN stop_reps 'Empty; rows of older versions have hashes of repeated stop words';
-- In the background, for the texts that are there.
ALTER TABLE span_texts MATERIALIZE PROJECTION p_docs, MATERIALIZE PROJECTION p_segments SETTINGS mutations_sync = 0, alter_sync = 0;
