// Shares in words. A share that is not whole is never written as all or nothing.
import { percent } from '../../text/format.ts';

/** Returns a share between 0 and 1 in percent: 0.4 %, 12 %, above 99 %. */
export function shareWords(share: number): string {
  return share > 0.99 && share < 1 ? `above ${percent(0.99)}` : percent(share);
}
