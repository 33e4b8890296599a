-- Parts of span_texts that may have texts with words and without a document number. The projection
-- p_docs answers it, but has rows that retention has masked as well.
SELECT DISTINCT _part AS name
FROM span_texts
WHERE doc = 0 AND dl > 0
