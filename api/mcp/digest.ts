// Builds the answer of a tool: a digest in markdown for the model, and the same facts as items for
// programs. Guarantees: both fit the token budget of the tool, and the digest fits max_chars; what
// strangers wrote stands between marks with a random name, which no text can contain by intention.
import { randomBytes } from 'node:crypto';
import { cutToTokens, tokensOf } from './tokens.ts';

/** Tokens kept for the head, the marks, the note on data and what to call next. */
const FRAME_TOKENS = 300;
/** Tokens of a row besides its text. */
const ROW_TOKENS = 20;
const NAME_BYTES = 6;

export interface ToolAnswer {
  content: { type: 'text'; text: string }[];
  structuredContent: { items: Record<string, unknown>[]; info: Record<string, unknown>; next: string | null };
}

export class Digest {
  readonly #budget: number;
  readonly #charsMax: number;
  readonly #head: string[] = [];
  readonly #rows: string[] = [];
  readonly #items: Record<string, unknown>[] = [];
  readonly #name = `data-${randomBytes(NAME_BYTES).toString('hex')}`;
  #info: Record<string, unknown> = {};
  #chars = 0;
  #textTokens = 0;
  #itemTokens = 0;

  /**
   * @param budget tokens of the answer
   * @param charsMax characters of the digest
   */
  constructor(budget: number, charsMax = Infinity) {
    this.#budget = budget - FRAME_TOKENS;
    this.#charsMax = charsMax;
  }

  /** Adds a line that the service wrote: numbers and words of its own, nothing that strangers wrote. */
  head(line: string): this {
    this.#head.push(line);
    this.#textTokens += tokensOf(line);
    return this;
  }

  /** Adds facts about the whole answer. */
  info(facts: Record<string, unknown>): this {
    this.#info = { ...this.#info, ...facts };
    this.#itemTokens += tokensOf(JSON.stringify(facts));
    return this;
  }

  /** Adds a row and its facts. @returns false, without adding it, when it does not fit */
  row(text: string, item: Record<string, unknown>): boolean {
    const [textTokens, itemTokens] = [tokensOf(text) + 1, tokensOf(JSON.stringify(item)) + 1];
    const fits =
      this.#chars + text.length <= this.#charsMax &&
      this.#textTokens + textTokens <= this.#budget &&
      this.#itemTokens + itemTokens <= this.#budget;
    if (!fits) return false;
    this.#rows.push(text);
    this.#items.push(item);
    this.#chars += text.length + 1;
    this.#textTokens += textTokens;
    this.#itemTokens += itemTokens;
    return true;
  }

  /** Returns the beginning of a text that still fits, as text and as a fact. */
  fitting(text: string): string {
    const left = this.#budget - Math.max(this.#textTokens, this.#itemTokens) - ROW_TOKENS;
    let cut = cutToTokens(text, left, this.#charsMax - this.#chars);
    // As JSON a text has more tokens, because quotes and line breaks are escaped.
    for (
      let tokens = tokensOf(JSON.stringify(cut));
      tokens > left && cut !== '';
      tokens = tokensOf(JSON.stringify(cut))
    )
      cut = cutToTokens(cut, Math.floor((tokensOf(cut) * left * 0.95) / tokens), cut.length - 1);
    return cut;
  }

  get rows(): number {
    return this.#rows.length;
  }

  /** @param next what to call to read on; null when nothing is left out */
  answer(next: string | null = null): ToolAnswer {
    const data = this.#rows.length === 0 ? [] : [`<${this.#name}>`, ...this.#rows, `</${this.#name}>`];
    const text = [...this.#head, ...data, ...(next === null ? [] : [`Next: ${next}`])].join('\n');
    return {
      content: [{ type: 'text', text }],
      structuredContent: { items: this.#items, info: this.#info, next },
    };
  }
}
