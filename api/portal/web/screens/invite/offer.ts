// What the link of a mail offers: an organization and the token that accepts it. Pure.

export interface Offer {
  org_id: string;
  token: string;
}

/**
 * Returns the offer in a fragment: #{org_id}.{token}. An id may hold points, a token holds none.
 * @returns null for a fragment that is none
 */
export function offerOf(fragment: string): Offer | null {
  const [, org_id = '', token = ''] = /^#?([A-Za-z0-9_.-]{1,128})\.([A-Za-z0-9_-]{1,200})$/.exec(fragment) ?? [];
  return org_id === '' ? null : { org_id, token };
}
