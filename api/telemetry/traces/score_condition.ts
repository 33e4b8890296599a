// Conditions on scores, written name:op:value. The name ends at the first operator between colons.

const OPERATORS = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte'] as const;
type Operator = (typeof OPERATORS)[number];
const CONDITION = /^(?<name>[^]{1,200}?):(?<op>eq|ne|gt|gte|lt|lte):(?<value>[^]{1,1000})$/;

export interface ScoreCondition {
  name: string;
  op: Operator;
  /** The value as a number, with 1 for true and 0 for false; null for a category. */
  number: number | null;
  /** The value as it was written, to compare with categories. */
  text: string;
}

/** Parses a condition; null if the text is not one, or compares the order of something that is not a number. */
export function parseScoreCondition(text: string): ScoreCondition | null {
  const { name, op, value } = CONDITION.exec(text)?.groups ?? {};
  const operator = OPERATORS.find((one) => one === op);
  if (name === undefined || operator === undefined || value === undefined) return null;
  const number = numberOf(value);
  if (number === null && operator !== 'eq' && operator !== 'ne') return null;
  return { name, op: operator, number, text: value };
}

function numberOf(value: string): number | null {
  if (value === 'true') return 1;
  if (value === 'false') return 0;
  const number = value.trim() === '' ? NaN : Number(value);
  return Number.isFinite(number) ? number : null;
}
