// The organization that this browser showed last; `/` leads to it.
const KEY = 'millrace.org';

/** Returns the id, or null where there is none. */
export function lastOrg(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** Keeps the id for the next visit of `/`. */
export function keepLastOrg(org_id: string): void {
  try {
    localStorage.setItem(KEY, org_id);
  } catch {
    // The first organization of the session is taken next time.
  }
}
