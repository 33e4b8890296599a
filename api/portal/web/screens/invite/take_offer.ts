// The offer of the link that brought a person here, kept in this tab until it is accepted.
import { type Offer, offerOf } from './offer.ts';

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
