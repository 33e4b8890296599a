-- Epoch of the text mover before which no place in postings lacks its document.
SELECT max(epoch) AS epoch
FROM landing_fences
WHERE partition = {partition:UInt16}
