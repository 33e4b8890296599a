// What the link of a mail offers: an organization and the token that accepts it. Pure, but for the address.

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

/**
 * Takes the offer out of the address, so that it stays neither in the history nor on the screen. It is kept in this tab
 * alone, because a login at the identity provider leaves the page in between.
 */
export function takeOffer(page: 'invite' | 'transfer'): Offer | null {
  const key = `millrace.${page}`;
  if (location.hash !== '') {
    sessionStorage.setItem(key, location.hash);
    history.replaceState(history.state, '', location.pathname);
  }
  return offerOf(sessionStorage.getItem(key) ?? '');
}

/** Forgets the offer, once it was accepted. */
export function forgetOffer(page: 'invite' | 'transfer'): void {
  sessionStorage.removeItem(`millrace.${page}`);
}
