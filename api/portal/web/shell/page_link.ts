// The address of the page as a link for others. Where the page shows a range of time that moves with the clock, such as
// the last 24 hours, a second form of the link holds the two ends of that range instead.
import { useEffect } from 'react';
import { copyText } from '../ui/copy_button.tsx';
import { toast } from '../ui/toast.tsx';

/** Returns the query string of the page with fixed times; null where the page has no relative range. */
let fixedSearch: (() => string) | null = null;
/** Time for which a copied address offers its fixed times. */
const OFFERED_MS = 8000;
/** The address that was copied last and offers fixed times. */
let offered: { href: string; at_ms: number } | null = null;

/**
 * Offers the link with fixed times while the component is mounted.
 * @param search returns its query string, without the question mark; null: the page shows no relative range
 */
export function useFixedLink(search: (() => string) | null): void {
  useEffect(() => {
    if (search === null) return undefined;
    fixedSearch = search;
    return () => {
      if (fixedSearch === search) fixedSearch = null;
    };
  }, [search]);
}

/**
 * Copies the address as it is in the bar, and offers fixed times where its range moves. A second call while that is
 * offered copies the fixed times.
 */
export async function copyLink(): Promise<void> {
  const { href } = location;
  if (offered !== null && offered.href === href && Date.now() - offered.at_ms < OFFERED_MS) {
    await copyFixedLink();
    return;
  }
  const fixes = fixedSearch !== null;
  // Noted before the copy is done, as the second key may come sooner.
  offered = fixes ? { href, at_ms: Date.now() } : null;
  if (!(await copyText(href))) refuse();
  else if (!fixes) toast({ text: 'The address is copied.' });
  else
    toast({
      text: 'The address is copied. Its time range ends when the link is opened.',
      action: { label: 'Copy with fixed times', run: () => void copyFixedLink() },
    });
}

/** Copies the address with both ends of its time range. */
export async function copyFixedLink(): Promise<void> {
  if (fixedSearch === null) return;
  offered = null;
  const { origin, pathname, hash } = location;
  const copied = await copyText(`${origin}${pathname}?${fixedSearch()}${hash}`);
  if (copied) toast({ text: 'The address is copied with fixed times.' });
  else refuse();
}

function refuse(): void {
  toast({ tone: 'error', text: 'The browser refused to copy.' });
}
