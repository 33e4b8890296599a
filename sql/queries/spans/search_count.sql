-- Number of documents that a search scores.
SELECT count() AS candidates FROM span_texts WHERE /*include spans/candidates.sql*/
SETTINGS use_text_index_postings_cache = 1
