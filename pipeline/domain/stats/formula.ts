// Arithmetic over names, as an organization writes it: tickets * 12.5 + leads * 40. In: text. Out:
// a formula that can be evaluated any number of times, or a message that says where the text is
// wrong. Pure.
//
// Guarantees: numbers, names, + - * / and parentheses only, so nothing can be called, looked up or
// constructed; parsing and evaluating end within a time bounded by the text's length; evaluating
// never throws.
import jsep from 'jsep';

/** Maximum characters of a formula. */
export const FORMULA_CHARS_MAX = 1000;
/** Maximum nesting of parentheses. */
const NESTING_MAX = 50;
/** Maximum numbers, names and operators. */
const STEPS_MAX = 400;

/** A step of a formula in postfix order. */
type Step =
  { kind: 'number'; value: number } | { kind: 'name'; name: string } | { kind: 'negate' } | { kind: Operator };
type Operator = '+' | '-' | '*' | '/';

export interface Formula {
  readonly steps: readonly Step[];
  /** The names that it uses, each once. */
  readonly names: readonly string[];
}

export type ParsedFormula = { ok: true; formula: Formula } | { ok: false; message: string };

class Refusal extends Error {}

const FOREIGN = /[^A-Za-z0-9_.+\-*/()\s]/u;
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const OPERATORS: ReadonlySet<string> = new Set<Operator>(['+', '-', '*', '/']);
const isOperator = (text: string): text is Operator => OPERATORS.has(text);

/**
 * Parses a formula. An error message begins with the position (`position 12: …`) or the name that
 * is wrong, where there is one.
 */
export function parseFormula(text: string): ParsedFormula {
  try {
    checkText(text);
    const steps: Step[] = [];
    compile(parse(text), steps);
    checkSteps(steps, STEPS_MAX);
    return {
      ok: true,
      formula: { steps, names: [...new Set(steps.flatMap((step) => (step.kind === 'name' ? [step.name] : [])))] },
    };
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, message: error.message };
    throw error;
  }
}

/** Rejects what the parser need not see. Positions count from 1. */
function checkText(text: string): void {
  if (text.length > FORMULA_CHARS_MAX) throw new Refusal(`is longer than ${FORMULA_CHARS_MAX} characters`);
  if (text.trim() === '') throw new Refusal('is empty');
  const foreign = FOREIGN.exec(text);
  if (foreign !== null)
    throw new Refusal(
      `position ${foreign.index + 1}: accepts numbers, names, + - * / and parentheses, not ${JSON.stringify(foreign[0])}`,
    );
  let depth = 0;
  for (let index = 0; index < text.length; index++) {
    if (text[index] === '(') depth += 1;
    if (text[index] === ')') depth -= 1;
    if (depth > NESTING_MAX)
      throw new Refusal(`position ${index + 1}: parentheses are nested deeper than ${NESTING_MAX}`);
  }
}

function parse(text: string): jsep.Expression {
  try {
    return jsep(text);
  } catch (error) {
    const at = error instanceof Error && 'index' in error && typeof error.index === 'number' ? error.index : 0;
    const what = error instanceof Error && 'description' in error ? String(error.description) : 'cannot be read';
    throw new Refusal(`position ${at + 1}: ${what.replace(/ at character \d+$/, '')}`, { cause: error });
  }
}

/**
 * Appends the steps of a node, and rejects every kind that is not arithmetic. The text's length
 * bounds the depth.
 */
function compile(node: jsep.Expression, steps: Step[]): void {
  checkSteps(steps, STEPS_MAX - 1);
  const known = node as jsep.CoreExpression;
  switch (known.type) {
    case 'Literal':
      if (typeof known.value !== 'number' || !Number.isFinite(known.value))
        throw new Refusal(`${known.raw}: is not a finite number`);
      steps.push({ kind: 'number', value: known.value });
      return;
    case 'Identifier':
      if (!NAME.test(known.name) || known.name.startsWith('__'))
        throw new Refusal(`${known.name}: is not a name of an outcome`);
      steps.push({ kind: 'name', name: known.name });
      return;
    case 'UnaryExpression':
      if (known.operator !== '-') throw new Refusal(`${known.operator}: is not an operator before a value; only - is`);
      compile(known.argument, steps);
      steps.push({ kind: 'negate' });
      return;
    case 'BinaryExpression':
      if (!isOperator(known.operator))
        throw new Refusal(`${known.operator}: is not an operator; the operators are + - * /`);
      compile(known.left, steps);
      compile(known.right, steps);
      steps.push({ kind: known.operator });
      return;
    case 'CallExpression':
      throw new Refusal(`${nameOf(known.callee)}: nothing can be called`);
    case 'MemberExpression':
      throw new Refusal(`${nameOf(known)}: a name holds no dot`);
    case 'ThisExpression':
      throw new Refusal('this: is not a name of an outcome');
    case 'Compound':
      throw new Refusal('an operator is missing between two values, or there is no value at all');
    case 'SequenceExpression':
    case 'ConditionalExpression':
    case 'ArrayExpression':
      throw new Refusal('accepts numbers, names, + - * / and parentheses');
  }
}

function checkSteps(steps: readonly Step[], max: number): void {
  if (steps.length > max) throw new Refusal(`has more than ${STEPS_MAX} numbers, names and operators`);
}

function nameOf(node: jsep.Expression): string {
  const known = node as jsep.CoreExpression;
  if (known.type === 'Identifier') return known.name;
  if (known.type === 'MemberExpression') return `${nameOf(known.object)}.${nameOf(known.property)}`;
  return '(…)';
}

/**
 * Returns the formula's value for these amounts; a missing name counts 0. Null when there is no
 * value: a division by zero, or a result beyond any number.
 */
export function evaluate({ steps }: Formula, amounts: ReadonlyMap<string, number>): number | null {
  const stack: number[] = [];
  for (const step of steps) {
    switch (step.kind) {
      case 'number':
        stack.push(step.value);
        break;
      case 'name':
        stack.push(amounts.get(step.name) ?? 0);
        break;
      case 'negate':
        stack.push(-(stack.pop() ?? NaN));
        break;
      case '+':
      case '-':
      case '*':
      case '/': {
        const right = stack.pop() ?? NaN;
        const left = stack.pop() ?? NaN;
        if (step.kind === '/' && right === 0) return null;
        stack.push(operate(step.kind, left, right));
      }
    }
  }
  const value = stack.pop() ?? NaN;
  return Number.isFinite(value) ? value : null;
}

function operate(operator: Operator, left: number, right: number): number {
  switch (operator) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    case '/':
      return left / right;
  }
}
