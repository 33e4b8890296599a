// The splitter: cuts plain text into the words that are indexed, counted, searched for and marked. A
// word is a run of Unicode letters, marks and digits as fold.ts writes it; a run of Han, kana, Hangul
// or Thai characters makes the overlapping pairs of its characters, a single character itself.
//
// This runs for every span with text. Characters that fold to one character are looked up and hashed
// in place, without substrings; runs with any other character take a slower path. Both are linear.
import { charKind, fold, isDiacritic, LETTER, PAIRED, SEPARATOR } from './fold.ts';

/** Words of texts, in order, in arrays that are reused. One splitter fills them at a time. */
export interface WordList {
  count: number;
  /** FNV-1a 32 over the UTF-16 code units of each word. */
  hashes: Int32Array;
  /** The words as the index has them, each with a space behind it. */
  units: Uint16Array;
  length: number;
  /** True when a word contains a character outside ASCII. */
  wide: boolean;
  /** Where each word is in its text, and where it ends in `units`; null where nobody asks. */
  places: WordPlaces | null;
}

interface WordPlaces {
  starts: Int32Array;
  ends: Int32Array;
  /** End of each word in `units`, without its space. */
  unitEnds: Int32Array;
}

const FNV_OFFSET = 0x811c9dc5 | 0;
const FNV_PRIME = 0x01000193;
const SPACE = 0x20;
/** Sizes kept between texts; a larger text gets larger arrays temporarily. */
const UNITS_KEPT = 64 * 1024;
/**
 * Maximum code units of the words for each code unit of a text. Pairs need three; few characters
 * that stand for whole words (U+FDFA) need more. Words beyond the bound are not indexed.
 */
const GROWTH_MAX = 4;
const GROWTH_FREE = 1024;

/** Values of a code unit that are no folded character. */
const UNKNOWN = 0xffff;
const COMPLEX = 0xfffe;
const DROPPED = 0xfffd;
/** By code unit: 0 for a separator, the folded character, or one of the above. Filled on demand. */
const FOLDED = new Uint16Array(65_536).fill(UNKNOWN);
for (let code = 0; code < 128; code++) {
  const char = String.fromCharCode(code);
  FOLDED[code] = /[A-Za-z0-9]/.test(char) ? char.toLowerCase().charCodeAt(0) : 0;
}

function foldedUnit(code: number): number {
  const known = FOLDED[code] ?? 0;
  if (known !== UNKNOWN) return known;
  const found = lookUp(code);
  FOLDED[code] = found;
  return found;
}

function lookUp(code: number): number {
  if (code >= 0xd800 && code <= 0xdfff) return COMPLEX;
  const kind = charKind(code);
  if (kind === SEPARATOR) return 0;
  const character = String.fromCharCode(code);
  if (isDiacritic(character)) return DROPPED;
  const folded = fold(character);
  const isSimple = kind === LETTER && !/\p{M}/u.test(character) && folded.length === 1;
  return isSimple && charKind(folded.charCodeAt(0)) === LETTER ? folded.charCodeAt(0) : COMPLEX;
}

/** Returns the hash by which a list knows a word; unsigned 32 bits. */
export function wordHash(word: string): number {
  let hash = FNV_OFFSET;
  for (let i = 0; i < word.length; i++) hash = Math.imul(hash ^ word.charCodeAt(i), FNV_PRIME);
  return hash >>> 0;
}

/** Returns an empty list. */
export function wordList(withPlaces: boolean): WordList {
  return {
    count: 0,
    hashes: new Int32Array(UNITS_KEPT),
    units: new Uint16Array(UNITS_KEPT),
    length: 0,
    wide: false,
    places: withPlaces
      ? {
          starts: new Int32Array(UNITS_KEPT),
          ends: new Int32Array(UNITS_KEPT),
          unitEnds: new Int32Array(UNITS_KEPT),
        }
      : null,
  };
}

/** Empties a list, and releases what a huge text needed. */
export function clearWords(list: WordList): void {
  list.count = 0;
  list.length = 0;
  list.wide = false;
  if (list.units.length > UNITS_KEPT) Object.assign(list, wordList(list.places !== null));
}

/** Returns the words of a list, each with a space between it and the next. */
export function joinedWords({ units, length, wide }: WordList): string {
  if (length === 0) return '';
  if (wide) return Buffer.from(units.buffer, 0, 2 * (length - 1)).toString('utf16le');
  if (bytes.length < length) bytes = Buffer.alloc(length);
  bytes.set(units.subarray(0, length - 1));
  const joined = bytes.toString('latin1', 0, length - 1);
  if (bytes.length > UNITS_KEPT) bytes = Buffer.alloc(UNITS_KEPT);
  return joined;
}
let bytes = Buffer.alloc(UNITS_KEPT);

/** Makes room for a text of this many code units behind the words of a list. */
function reserve(list: WordList, length: number): void {
  const wanted = list.length + length + 2;
  if (wanted <= list.units.length) return;
  const size = Math.max(wanted, list.units.length * 2);
  list.units = grown(list.units, new Uint16Array(size));
  list.hashes = grown(list.hashes, new Int32Array(size));
  const { places } = list;
  if (places === null) return;
  places.starts = grown(places.starts, new Int32Array(size));
  places.ends = grown(places.ends, new Int32Array(size));
  places.unitEnds = grown(places.unitEnds, new Int32Array(size));
}

function grown<T extends Uint16Array | Int32Array>(from: T, to: T): T {
  to.set(from);
  return to;
}

/** Code units of the text that is split: reading them is several times faster than the string's. */
let codes = new Uint16Array(UNITS_KEPT);
let codeBytes = Buffer.from(codes.buffer);

function load(text: string): void {
  const wanted = Math.max(text.length, UNITS_KEPT);
  if (codes.length !== wanted) {
    codes = new Uint16Array(wanted);
    codeBytes = Buffer.from(codes.buffer);
  }
  codeBytes.write(text, 0, 'utf16le');
}

/** Appends the words of a text to a list. A word never continues into the next text. */
export function splitWords(text: string, list: WordList): void {
  const length = text.length;
  load(text);
  reserve(list, length);
  const unitsMax = list.length + length * GROWTH_MAX + GROWTH_FREE;
  const input = codes;
  let { units, hashes } = list;
  let at = list.length;
  let i = 0;
  while (i < length) {
    let unit = FOLDED[input[i] ?? 0] ?? 0;
    if (unit === 0) {
      i++;
      continue;
    }
    const start = i;
    const from = at;
    let hash = FNV_OFFSET;
    let seen = 0;
    while (unit !== 0) {
      if (unit >= DROPPED) {
        if (unit === UNKNOWN) {
          unit = foldedUnit(input[i] ?? 0);
          continue;
        }
        if (unit === COMPLEX) break;
      } else {
        units[at++] = unit;
        seen |= unit;
        hash = Math.imul(hash ^ unit, FNV_PRIME);
      }
      unit = ++i < length ? (FOLDED[input[i] ?? 0] ?? 0) : 0;
    }
    if (unit === COMPLEX) {
      list.length = from;
      const end = runEnd(text, i);
      if (end > start && from < unitsMax) splitRun(text, start, end, list);
      i = end > i ? end : i + charLength(text, i);
      ({ units, hashes } = list);
      at = list.length;
    } else if (at > from) {
      hashes[list.count] = hash;
      if (seen > 127) list.wide = true;
      if (list.places !== null) place(list.places, list.count, start, i, at);
      list.count++;
      units[at++] = SPACE;
    }
  }
  list.length = at;
}

function place(places: WordPlaces, word: number, start: number, end: number, unitEnd: number): void {
  places.starts[word] = start;
  places.ends[word] = end;
  places.unitEnds[word] = unitEnd;
}

const charLength = (text: string, index: number): number => ((text.codePointAt(index) ?? 0) > 0xffff ? 2 : 1);

/** Returns the end of the run of word characters from an index on. */
function runEnd(text: string, from: number): number {
  let end = from;
  while (end < text.length) {
    const codePoint = text.codePointAt(end) ?? 0;
    if (charKind(codePoint) === SEPARATOR) break;
    end += codePoint > 0xffff ? 2 : 1;
  }
  return end;
}

/** Folded forms of short runs: languages repeat their words. */
const foldedRuns = new Map<string, string>();
const CACHED_RUNS_MAX = 8192;
const CACHED_RUN_UNITS_MAX = 24;

function foldCached(run: string): string {
  if (run.length > CACHED_RUN_UNITS_MAX) return fold(run);
  const known = foldedRuns.get(run);
  if (known !== undefined) return known;
  const folded = fold(run);
  if (foldedRuns.size >= CACHED_RUNS_MAX) foldedRuns.clear();
  foldedRuns.set(run, folded);
  return folded;
}

/** Appends the words of a run that has characters which do not fold one by one. */
function splitRun(text: string, start: number, end: number, list: WordList): void {
  const run = text.slice(start, end);
  const folded = foldCached(run).slice(0, run.length * GROWTH_MAX + GROWTH_FREE);
  reserve(list, 3 * folded.length + (text.length - end));
  const sources = list.places === null ? null : sourcesOf(run, folded);
  for (let at = 0; at < folded.length;) {
    const kind = charKind(folded.codePointAt(at) ?? 0);
    let next = at + charLength(folded, at);
    while (next < folded.length && charKind(folded.codePointAt(next) ?? 0) === kind) next += charLength(folded, next);
    if (kind === LETTER) add(list, folded, at, next, start, sources);
    else if (kind === PAIRED) addPairs(list, folded, at, next, start, sources);
    at = next;
  }
}

function addPairs(
  list: WordList,
  folded: string,
  from: number,
  to: number,
  start: number,
  sources: Int32Array | null,
): void {
  let first = from;
  let second = first + charLength(folded, first);
  if (second >= to) add(list, folded, from, to, start, sources);
  while (second < to) {
    const next = second + charLength(folded, second);
    add(list, folded, first, next, start, sources);
    first = second;
    second = next;
  }
}

/** Appends the folded characters from one index to another as a word. */
function add(
  list: WordList,
  folded: string,
  from: number,
  to: number,
  start: number,
  sources: Int32Array | null,
): void {
  const { units } = list;
  let hash = FNV_OFFSET;
  for (let at = from; at < to; at++) {
    const unit = folded.charCodeAt(at);
    if (unit > 127) list.wide = true;
    units[list.length++] = unit;
    hash = Math.imul(hash ^ unit, FNV_PRIME);
  }
  list.hashes[list.count] = hash;
  if (list.places !== null && sources !== null)
    place(
      list.places,
      list.count,
      start + (sources[2 * from] ?? 0),
      start + (sources[2 * (to - 1) + 1] ?? 0),
      list.length,
    );
  list.count++;
  units[list.length++] = SPACE;
}

/** A character with the marks, and the jamo, that are folded together with it. */
const CLUSTER =
  /[^\p{M}\u1160-\u11ff\uff9e\uff9f][\p{M}\u1160-\u11ff\uff9e\uff9f]*|[\p{M}\u1160-\u11ff\uff9e\uff9f]+/gu;

/**
 * Returns the start and end in the run of the character that each code unit of its folded form is
 * from; the whole run where characters cannot be told apart.
 */
function sourcesOf(run: string, folded: string): Int32Array {
  const sources = new Int32Array(2 * folded.length);
  let at = 0;
  for (const { 0: cluster, index } of run.matchAll(CLUSTER)) {
    const own = fold(cluster);
    if (!folded.startsWith(own, at)) return sources.fill(0).map((_, n) => (n % 2 === 0 ? 0 : run.length));
    for (let n = at; n < at + own.length; n++) {
      sources[2 * n] = index;
      sources[2 * n + 1] = index + cluster.length;
    }
    at += own.length;
  }
  return at === folded.length ? sources : sources.map((_, n) => (n % 2 === 0 ? 0 : run.length));
}
