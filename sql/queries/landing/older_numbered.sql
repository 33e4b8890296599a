-- Number of texts with a document number in a range. The projection p_docs has masked rows as well.
SELECT count() AS texts
FROM span_texts
WHERE doc >= {from:UInt64} AND doc < {until:UInt64} AND dl > 0
SETTINGS optimize_use_projections = 0
