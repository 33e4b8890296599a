// The variables of a template: {{name}}, as the service reads them (pipeline/domain/text/template.ts;
// a unit test compares the two). Pure.

const VARIABLE = /\{\{\s*([\p{L}\p{N}_.-]+)\s*\}\}/gu;

/** A variable in a text. */
export interface VariablePlace {
  name: string;
  /** Offsets of the braces and all between them. */
  from: number;
  to: number;
}

/** Returns every variable of a text with its place, in order. */
export function variablePlaces(text: string): VariablePlace[] {
  return Array.from(text.matchAll(VARIABLE), (match) => ({
    name: match[1] ?? '',
    from: match.index,
    to: match.index + match[0].length,
  }));
}

/** Returns the names of the variables of some texts, each once, in order. */
export function variableNames(...texts: readonly string[]): string[] {
  return [...new Set(texts.flatMap((text) => variablePlaces(text).map(({ name }) => name)))];
}
