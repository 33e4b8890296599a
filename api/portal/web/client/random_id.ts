// Random UUIDs. crypto.randomUUID exists only in a secure context, and the portal may be opened
// over http at the address of another machine; crypto.getRandomValues exists everywhere. Pure.

/** Returns a UUID of version 4, as Idempotency-Key accepts it. */
export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
