// Which addresses of users' texts may stand in a link, and which images may be shown.

const LINK = /^(?:https?:\/\/|mailto:)/i;
const DATA_IMAGE = /^data:image\/(?:png|jpeg|gif|webp|avif);base64,/i;

/** Returns an address that may stand in a link: http, https or mailto; null for all others. */
export function safeAddress(url: string): string | null {
  const trimmed = url.trim();
  return LINK.test(trimmed) ? trimmed : null;
}

/** Returns whether an address is an image that the text itself holds, of a type without scripts. */
export const isInlineImage = (url: string): boolean => DATA_IMAGE.test(url);
