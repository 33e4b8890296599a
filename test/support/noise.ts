// Texts without any period: a regular expression's automaton meets a new state at nearly every character of them.

/** `chars` characters a and b, the same ones every time. */
export function noiseOfTwo(chars: number): string {
  let state = 1;
  let text = '';
  for (let at = 0; at < chars; at++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    text += (state & 1) === 0 ? 'a' : 'b';
  }
  return text;
}
