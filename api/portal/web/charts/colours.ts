// Colours of the values of a chart. A value has the colour of its hash; where an earlier value of the
// same chart has that colour, it takes the next free one. The choice is remembered for the
// organization, so that a value has one colour on every screen. Bounded: 8 colours, and the memory of
// one organization forgets its oldest values beyond VALUES_MAX. Only `rememberedColours` has state.

export const COLOURS = 8;
/** Values whose colours are remembered for an organization. */
const VALUES_MAX = 2000;

/** Name of a colour of the style sheet (styles/tokens.css), without its leading dashes. */
export type ColourToken = `series-${number}` | 'series-other' | 'accent' | 'error' | 'warn' | 'ok' | 'text-3';

/**
 * Returns a colour from 1 to 8 for each value, in the order of the values. Colours repeat beyond 8 values.
 * @param known colours that values have on other screens; the chosen ones are added
 */
export function coloursOf(values: readonly string[], known: Map<string, number> = new Map()): number[] {
  const taken = new Set<number>();
  return values.map((value) => {
    const wanted = known.get(value) ?? (hashOf(value) % COLOURS) + 1;
    const colour = taken.size >= COLOURS || !taken.has(wanted) ? wanted : nextFree(wanted, taken);
    taken.add(colour);
    if (!known.has(value)) known.set(value, colour);
    return colour;
  });
}

function nextFree(from: number, taken: ReadonlySet<number>): number {
  for (let step = 1; step < COLOURS; step++) {
    const colour = ((from - 1 + step) % COLOURS) + 1;
    if (!taken.has(colour)) return colour;
  }
  return from;
}

/** Returns the 32-bit FNV-1a hash of a text. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return hash;
}

let memory: { org_id: string; known: Map<string, number> } = { org_id: '', known: new Map() };

/** Returns the colours of values of an organization, the same ones for a value on every screen. */
export function rememberedColours(org_id: string, values: readonly string[]): ColourToken[] {
  if (memory.org_id !== org_id) memory = { org_id, known: new Map() };
  const { known } = memory;
  const colours = coloursOf(values, known);
  for (const oldest of known.keys()) {
    if (known.size <= VALUES_MAX) break;
    known.delete(oldest);
  }
  return colours.map((colour): ColourToken => `series-${colour}`);
}
