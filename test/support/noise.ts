// Texts without a period: at nearly every character, the automaton of a regular expression reaches
// a new state.

/** Returns `chars` characters, each a or b, the same in every run. */
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
