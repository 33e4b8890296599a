// Redacts personal data in telemetry. In: texts, or JSON values of any depth. Out: the same with
// each find replaced: [EMAIL], [PHONE], [CARD], [IP], [SSN] or [<label>] of an own pattern, or
// these with a keyed hash.
//
// Guarantees: time is linear in the text. Overlapping finds are replaced together, by the label of
// the longest (of the first in the order of the policy when equal), so nothing of any find remains.
// Equal values are replaced by equal texts every time.
import { createHmac } from 'node:crypto';
import type { CustomPattern, PiiKind } from '../../../schemas/records/pii_policy.ts';
import { DEPTH_MAX, deeperThan } from '../text/nesting.ts';
import { findEmails, findIpv4, findIpv6, mayHoldEmails } from './addresses.ts';
import { findNumbers, isCard, mayHoldNumbers, type NumberKind, type Place } from './numbers.ts';
import { IN_PLACE, type OwnBounds, type OwnFind, type OwnFinds, OwnPatterns, OwnSearch } from './own_patterns.ts';
import { isRawJson, parsedJson } from '../text/raw_json.ts';

/**
 * Hex digits of a hash: enough to distinguish a billion values of an organization, too few to be
 * worth attacking without the key.
 */
const HASH_DIGITS = 12;
/** Maximum names of clean fields remembered: every event brings the same ones. */
const CLEAN_NAMES_MAX = 10_000;
const CLEAN_NAME_CHARS_MAX = 64;
/** Contained in every IP address; without look-behind, so that a test costs next to nothing. */
const HAS_IPV4 = /\d\.\d{1,3}\.\d{1,3}\.\d/;
const HAS_IPV6 = /:[0-9A-Fa-f]{0,4}:/;
/** Texts cached with their result, so that a prompt that is also an attribute is read once. */
const KNOWN_TEXTS_MAX = 4;
const KNOWN_TEXT_CHARS_MIN = 64;
/**
 * Replaces a text that own patterns could not search within their bounds, and its kind in
 * pii.match.
 */
const WHOLE = '[REDACTED]';
const WHOLE_KIND = 'unsearched';
/** The smallest number with seven digits: smaller ones are no phones, SSNs or cards. */
const NUMBER_MIN = 1e6;
const WHOLE_NUMBER = /^\d+$/;
/**
 * A value of this shape is read together with its field's name: {"phone": "5551234567"} says what
 * it is.
 */
const NUMBER_VALUE = /^[+(]?[\d ().\-/]{7,32}$/;
/**
 * Maximum characters from the end of a name that are read with its value, so that a long name is
 * not read again for each value.
 */
const LEAD_CHARS_MAX = 64;

/** What was found, in the order that decides between finds of equal length. */
interface Find {
  start: number;
  end: number;
  /** The label that replaces the find, in brackets. */
  label: string;
  /** The kind reported in pii.match. */
  kind: string;
  rank: number;
}

export interface PiiRules {
  kinds: readonly PiiKind[];
  custom: readonly CustomPattern[];
  /** Key of the organization's hashes; null when a find is replaced by its label alone. */
  hash_key: Buffer | null;
  /** Bounds of the own patterns; IN_PLACE by default. */
  bounds?: OwnBounds | undefined;
}

type Finder = (text: string, found: (place: Place) => void) => void;

/** The redaction of an organization, compiled once for each version of its policy. */
export class PiiRedactor {
  readonly #kinds: ReadonlySet<PiiKind>;
  readonly #numbers: readonly NumberKind[];
  readonly #custom: readonly CustomPattern[];
  readonly #bounds: OwnBounds;
  readonly own: OwnPatterns;
  readonly #hashKey: Buffer | null;
  readonly #cleanNames = new Set<string>();

  constructor({ kinds, custom, hash_key, bounds = IN_PLACE }: PiiRules) {
    this.#kinds = new Set(kinds);
    this.#numbers = (['card', 'ssn', 'phone'] as const).filter((kind) => this.#kinds.has(kind));
    this.#custom = custom;
    this.own = new OwnPatterns(custom);
    this.#bounds = bounds;
    this.#hashKey = hash_key;
  }

  /** Begins the redaction of one event, which collects its finds and reads no text twice. */
  begin(known: ReadonlyMap<string, OwnFinds> = NOTHING_KNOWN): Redaction {
    return new Redaction(this, new OwnSearch(this.own, this.#bounds.steps(), known));
  }

  /**
   * Returns true when the own patterns may need more than runs in place for an event of this many
   * characters; see redact.
   */
  mayExceed(chars: number): boolean {
    return this.own.patterns.length > 0 && chars * this.own.weight > this.#bounds.steps() / 2;
  }

  /** Records the time that own patterns took in this thread for an event. */
  took({ ownMs }: Redaction): void {
    if (ownMs > 0) this.#bounds.took(ownMs);
  }

  /**
   * Redacts an event with all the time that own patterns may take: texts that exceed this thread's
   * budget are searched in another thread.
   * @param make redacts everything, giving the same texts to the redaction every time; it runs once
   * or twice
   */
  async redact<T>(make: (redaction: Redaction) => T): Promise<T> {
    const first = this.begin();
    const made = make(first);
    this.took(first);
    const texts = first.exceeded;
    if (texts.length === 0) return made;
    const finds = await this.#bounds.search(this.own.patterns, texts);
    const second = this.begin(new Map(texts.map((text, index) => [text, finds[index] ?? 'exceeded'])));
    const whole = make(second);
    this.took(second);
    return whole;
  }

  /** Returns false for most texts without personal data of the policy's kinds, at little cost. */
  suspects(text: string): boolean {
    const kinds = this.#kinds;
    if (kinds.has('email') && mayHoldEmails(text)) return true;
    if (this.#numbers.length > 0 && text.length >= 7 && mayHoldNumbers(text)) return true;
    return kinds.has('ip') && (HAS_IPV4.test(text) || (text.includes(':') && HAS_IPV6.test(text)));
  }

  /**
   * Returns true when the name of a field contains nothing to redact. @param own the own patterns
   * of the event
   */
  isCleanName(name: string, own: OwnSearch): boolean {
    if (this.#cleanNames.has(name)) return true;
    if (name.length > CLEAN_NAME_CHARS_MAX || this.suspects(name)) return false;
    const finds = own.find(name);
    if (finds === 'exceeded' || finds.length > 0) return false;
    if (this.#cleanNames.size < CLEAN_NAMES_MAX) this.#cleanNames.add(name);
    return true;
  }

  /**
   * Returns the finds of a text from left to right, overlapping ones merged.
   * @param own what own patterns found in it
   * @param shift characters in front of the text that own patterns searched too
   */
  findsIn(text: string, own: readonly OwnFind[] = [], shift = 0): Find[] {
    const finds: Find[] = own.flatMap(([rank, start, end]) => {
      const label = this.#custom[rank]?.label ?? '';
      return { start: start + shift, end: end + shift, label, kind: label, rank: 5 + rank };
    });
    const collect = (label: string, kind: string, rank: number, finder: Finder): void => {
      finder(text, ([start, end]) => finds.push({ start, end, label, kind, rank }));
    };
    const kinds = this.#kinds;
    if (kinds.has('email') && mayHoldEmails(text)) collect('EMAIL', 'email', 0, findEmails);
    if (this.#numbers.length > 0) {
      findNumbers(text, this.#numbers, (kind, [start, end]) => {
        finds.push({ start, end, label: kind.toUpperCase(), kind, rank: 1 + this.#numbers.indexOf(kind) });
      });
    }
    if (kinds.has('ip') && HAS_IPV4.test(text)) collect('IP', 'ip', 4, findIpv4);
    if (kinds.has('ip') && HAS_IPV6.test(text)) collect('IP', 'ip', 4, findIpv6);
    return finds.length < 2 ? finds : joined(finds);
  }

  /**
   * Returns true when a number may be a find: for an own pattern any number, otherwise one of seven
   * digits or more.
   */
  suspectsNumber(value: number): boolean {
    return (
      Number.isInteger(value) &&
      (value >= NUMBER_MIN ? this.#numbers.length > 0 || this.#custom.length > 0 : this.#custom.length > 0)
    );
  }

  /** Returns true for a card number without separators, whatever the field's name. */
  isCardNumber(digits: string): boolean {
    return this.#kinds.has('card') && digits.length >= 13 && isCard(digits);
  }

  /** Returns the text that replaces a find. */
  replacement(label: string, kind: string, text: string): string {
    if (this.#hashKey === null) return `[${label}]`;
    const hash = createHmac('sha256', this.#hashKey)
      .update(`${label}\n${canonical(kind, text)}`)
      .digest('hex');
    return `[${label}:${hash.slice(0, HASH_DIGITS)}]`;
  }
}

const NOTHING_KNOWN: ReadonlyMap<string, OwnFinds> = new Map();

/** One pass over the texts of an event or of an export. */
export class Redaction {
  readonly #redactor: PiiRedactor;
  readonly #own: OwnSearch;
  readonly #known: { text: string; redacted: string; kinds: readonly string[] }[] = [];
  #kinds = new Set<string>();

  constructor(redactor: PiiRedactor, own: OwnSearch) {
    this.#redactor = redactor;
    this.#own = own;
  }

  /** Texts replaced as a whole because own patterns exceeded this thread's budget. */
  get exceeded(): readonly string[] {
    return this.#own.exceeded;
  }

  /** Milliseconds that own patterns took. */
  get ownMs(): number {
    return this.#own.ms;
  }

  /** Returns the kinds and labels found since the last call, sorted by name. */
  takeKinds(): string[] {
    const kinds = [...this.#kinds].sort();
    if (kinds.length > 0) this.#kinds = new Set();
    return kinds;
  }

  /**
   * Returns the text with each find replaced; the same string when there is none.
   * @param name name of the field that contains it
   */
  text(text: string, name = ''): string {
    if (text.length < KNOWN_TEXT_CHARS_MIN) return this.#looked(text, name).redacted;
    const known = this.#known.find((one) => one.text === text);
    if (known !== undefined) {
      for (const kind of known.kinds) this.#kinds.add(kind);
      return known.redacted;
    }
    const { redacted, kinds } = this.#looked(text, '');
    this.#known.push({ text, redacted, kinds });
    if (this.#known.length > KNOWN_TEXTS_MAX) this.#known.shift();
    return redacted;
  }

  /**
   * Redacts a JSON text as the value that it encodes, so that it stays JSON and long numbers keep
   * their digits. Any other text is redacted as text.
   */
  textOrJson(text: string): string {
    const first = text.charCodeAt(0);
    if (first !== 0x7b && first !== 0x5b) return this.text(text);
    // A number is read together with its field's name, which the text alone may not show; an escape
    // may hide anything.
    if (!this.#redactor.suspects(text) && !this.#own.mayMatch(text) && !mayHoldNumbers(text) && !text.includes('\\u'))
      return text;
    const value = parsedJson(text);
    if (value === undefined || deeperThan(value, DEPTH_MAX)) return this.text(text);
    const changed = this.value(value);
    return changed === value ? text : JSON.stringify(changed);
  }

  /**
   * Returns a JSON value with each find replaced in strings and field names; whole numbers that are
   * finds become texts. Returns the same object when there is none.
   */
  value(value: unknown, name = ''): unknown {
    if (typeof value === 'string') return this.text(value, name);
    if (typeof value === 'number')
      return this.#redactor.suspectsNumber(value) ? this.#number(value, String(value), name) : value;
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return this.#array(value, name);
    if (isRawJson(value)) return this.#number(value, value.rawJSON, name);
    return this.fields(value as Record<string, unknown>);
  }

  /** Redacts an object's fields except the untouched ones. */
  fields(fields: Record<string, unknown>, untouched?: ReadonlySet<string>): Record<string, unknown> {
    let changed: [string, unknown][] | null = null;
    const keys = Object.keys(fields);
    for (const [index, key] of keys.entries()) {
      const value = fields[key];
      const isLeft = untouched?.has(key) === true;
      const newKey = isLeft || this.#redactor.isCleanName(key, this.#own) ? key : this.text(key);
      const newValue = isLeft || typeof value === 'boolean' || value === null ? value : this.value(value, key);
      if (changed === null && newKey === key && newValue === value) continue;
      changed ??= keys.slice(0, index).map((earlier) => [earlier, fields[earlier]]);
      changed.push([newKey, newValue]);
    }
    return changed === null ? fields : withOwnNames(changed);
  }

  #array(items: readonly unknown[], name: string): readonly unknown[] {
    let changed: unknown[] | null = null;
    for (const [index, item] of items.entries()) {
      const redacted = this.value(item, name);
      if (redacted !== item) (changed ??= [...items])[index] = redacted;
    }
    return changed ?? items;
  }

  #number(value: unknown, digits: string, name: string): unknown {
    if (this.#redactor.isCardNumber(digits)) {
      this.#kinds.add('card');
      return this.#redactor.replacement('CARD', 'card', digits);
    }
    if (!WHOLE_NUMBER.test(digits)) return value;
    const redacted = this.text(digits, name);
    return redacted === digits ? value : redacted;
  }

  #looked(text: string, name: string): { redacted: string; kinds: readonly string[] } {
    const own = this.#own.find(text);
    if (own === 'exceeded') {
      this.#kinds.add(WHOLE_KIND);
      return { redacted: WHOLE, kinds: [WHOLE_KIND] };
    }
    return own.length > 0 || this.#redactor.suspects(text)
      ? this.#changed(text, name, own)
      : { redacted: text, kinds: [] };
  }

  #changed(text: string, name: string, own: readonly OwnFind[]): { redacted: string; kinds: readonly string[] } {
    const lead = name !== '' && NUMBER_VALUE.test(text) ? leadOf(name) : '';
    const finds = this.#redactor.findsIn(lead + text, own, lead.length);
    let redacted = '';
    let at = 0;
    const kinds: string[] = [];
    for (const { start, end, label, kind } of finds) {
      const from = start - lead.length;
      const to = end - lead.length;
      if (from < 0) continue;
      redacted += text.slice(at, from) + this.#redactor.replacement(label, kind, text.slice(from, to));
      at = to;
      kinds.push(kind);
      this.#kinds.add(kind);
    }
    return { redacted: at === 0 ? text : redacted + text.slice(at), kinds };
  }
}

/**
 * Returns the end of a field's name as words with a colon, as a text would introduce the number.
 */
const leadOf = (name: string): string =>
  `${name.slice(-LEAD_CHARS_MAX).replaceAll(/[_-]|(?<=[a-z])(?=[A-Z])/g, ' ')}: `;

/**
 * Merges overlapping finds: from the first start to the last end, with the label of the longest.
 */
function joined(finds: Find[]): Find[] {
  finds.sort((a, b) => a.start - b.start || b.end - a.end || a.rank - b.rank);
  const kept: Find[] = [];
  let longest = 0;
  for (const find of finds) {
    const last = kept.at(-1);
    const length = find.end - find.start;
    if (last === undefined || find.start >= last.end) {
      kept.push({ ...find });
      longest = length;
      continue;
    }
    if (length > longest || (length === longest && find.rank < last.rank)) {
      [last.label, last.kind, last.rank] = [find.label, find.kind, find.rank];
      longest = length;
    }
    last.end = Math.max(last.end, find.end);
  }
  return kept;
}

/**
 * Returns the form that is hashed, so that equal values have equal hashes: digits without
 * separators, addresses in lower case.
 */
function canonical(kind: string, text: string): string {
  if (kind === 'card' || kind === 'ssn' || kind === 'phone') return text.replaceAll(/\D/g, '');
  if (kind === 'email') return text.toLowerCase().replace('%40', '@');
  return kind === 'ip' ? text.toLowerCase() : text;
}

/** Distinguishes fields whose names became equal: [EMAIL], [EMAIL] 2. */
function withOwnNames(entries: readonly [string, unknown][]): Record<string, unknown> {
  const named = new Map<string, unknown>();
  const counts = new Map<string, number>();
  for (const [key, value] of entries) {
    let name = key;
    let count = counts.get(key) ?? 1;
    while (named.has(name)) name = `${key} ${++count}`;
    counts.set(key, count);
    named.set(name, value);
  }
  return Object.fromEntries(named);
}
