// Okapi BM25 over spans: prompt and response together are one document. Pure; the counts come from
// the store.

export const BM25_K1 = 1.2;
export const BM25_B = 0.75;

/** Returns the weight of a word that occurs in `df` of `documents` documents. */
export function inverseDocumentFrequency(documents: number, df: number): number {
  return Math.log(1 + (documents - df + 0.5) / (df + 0.5));
}

/** Returns what a word with `tf` occurrences adds to the score of a document of `dl` words. */
export function termScore(idf: number, tf: number, dl: number, avgdl: number): number {
  return (idf * tf * (BM25_K1 + 1)) / (tf + BM25_K1 * (1 - BM25_B + (BM25_B * dl) / avgdl));
}

/** Returns the upper bound of what a word adds to a score, however often it occurs. */
export function termScoreMax(idf: number): number {
  return idf * (BM25_K1 + 1);
}
