// Chooses the content coding of a response by the Accept-Encoding header of its request (RFC 9110, 12.5.3).

export type Coding = 'br' | 'gzip';

/**
 * Returns the coding that the client prefers among those on offer; null where it accepts none of them. A client without
 * the header gets the response as it is.
 * @param offered codings in the order of the server's preference, which decides between equal weights
 */
export function preferredCoding(header: string | undefined, offered: readonly Coding[]): Coding | null {
  if (header === undefined || header === '') return null;
  const weights = new Map<string, number>();
  for (const part of header.split(',')) {
    const [name = '', ...params] = part.split(';').map((text) => text.trim().toLowerCase());
    if (name !== '') weights.set(name === 'x-gzip' ? 'gzip' : name, weightOf(params));
  }
  const others = weights.get('*') ?? 0;
  let best: Coding | null = null;
  // The response as it is counts as accepted unless the client says otherwise; at an equal weight, the coding is better.
  let bestWeight = 0;
  const identity = weights.get('identity') ?? 0;
  for (const coding of offered) {
    const weight = weights.get(coding) ?? others;
    if (weight > bestWeight && weight >= identity) {
      best = coding;
      bestWeight = weight;
    }
  }
  return best;
}

/** Returns the weight of a coding, 0 to 1; 1 without one, and 0 for one that cannot be read. */
function weightOf(params: readonly string[]): number {
  const q = params.find((param) => param.startsWith('q='));
  if (q === undefined) return 1;
  const weight = Number(q.slice(2));
  return q.length > 2 && weight >= 0 && weight <= 1 ? weight : 0;
}
