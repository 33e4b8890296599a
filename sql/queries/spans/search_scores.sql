-- Best documents by BM25, with their whole texts.
/*include spans/search_ranked.sql*/
SETTINGS use_text_index_postings_cache = 1
