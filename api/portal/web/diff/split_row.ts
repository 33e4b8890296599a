// Cuts a row with long lines into rows of bounded length, so that the view mounts only what is in
// sight. What both sides share stays in the same row. Pure.
import type { DiffLine, DiffPart, DiffRow } from './shape.ts';

/** Characters of one side of a row. */
export const ROW_CHARS_MAX = 2000;

/** Words that both sides share, or the words of each side where they differ. */
interface Unit {
  left: DiffPart | null;
  right: DiffPart | null;
}

/** Returns the row itself, or several rows that continue it. */
export function splitRow(row: DiffRow): DiffRow[] {
  const { left, right } = row;
  if (charsOf(left) <= ROW_CHARS_MAX && charsOf(right) <= ROW_CHARS_MAX) return [row];
  const rows: DiffRow[] = [];
  let sides: { left: DiffPart[]; right: DiffPart[] } = { left: [], right: [] };
  let room = { left: ROW_CHARS_MAX, right: ROW_CHARS_MAX };
  const flush = (): void => {
    // The first row has both lines, also an empty one; later rows have what goes on.
    const lineOf = (line: DiffLine | null, parts: DiffPart[]): DiffLine | null => {
      if (line === null || (parts.length === 0 && rows.length > 0)) return null;
      return { number: rows.length === 0 ? line.number : 0, parts };
    };
    const lines = { left: lineOf(left, sides.left), right: lineOf(right, sides.right) };
    const kind = lines.left === null ? 'added' : lines.right === null ? 'removed' : row.kind;
    if (lines.left !== null || lines.right !== null) rows.push({ kind, ...lines });
    sides = { left: [], right: [] };
    room = { left: ROW_CHARS_MAX, right: ROW_CHARS_MAX };
  };
  for (const unit of unitsOf(row).flatMap(cutUnit)) {
    const [a, b] = [unit.left?.text.length ?? 0, unit.right?.text.length ?? 0];
    if (a > room.left || b > room.right) flush();
    if (unit.left !== null) sides.left.push(unit.left);
    if (unit.right !== null) sides.right.push(unit.right);
    room = { left: room.left - a, right: room.right - b };
  }
  flush();
  return rows;
}

const charsOf = (line: DiffLine | null): number => line?.parts.reduce((sum, { text }) => sum + text.length, 0) ?? 0;

/** Returns the parts of both lines in pairs. The unchanged parts of both lines stand in the same order. */
function unitsOf({ left, right }: DiffRow): Unit[] {
  const [a, b] = [left?.parts ?? [], right?.parts ?? []];
  const units: Unit[] = [];
  for (let [i, j] = [0, 0]; i < a.length || j < b.length;) {
    const [from, to] = [a[i] ?? null, b[j] ?? null];
    const isPair = from !== null && to !== null && from.changed === to.changed;
    const takesLeft = isPair || to === null || from?.changed === true;
    const takesRight = isPair || !takesLeft;
    units.push({ left: takesLeft ? from : null, right: takesRight ? to : null });
    i += takesLeft ? 1 : 0;
    j += takesRight ? 1 : 0;
  }
  return units;
}

/** Cuts a unit into units of at most ROW_CHARS_MAX characters on each side. */
function cutUnit({ left, right }: Unit): Unit[] {
  const [a, b] = [cutPart(left), cutPart(right)];
  return Array.from({ length: Math.max(a.length, b.length) }, (_, i) => ({ left: a[i] ?? null, right: b[i] ?? null }));
}

function cutPart(part: DiffPart | null): DiffPart[] {
  if (part === null) return [];
  const parts: DiffPart[] = [];
  for (let from = 0; from < part.text.length || parts.length === 0;) {
    const to = cutAt(part.text, from + ROW_CHARS_MAX);
    parts.push({ ...part, text: part.text.slice(from, to) });
    from = to;
  }
  return parts;
}

/** Returns the place of a cut that does not part the two halves of a character. */
const cutAt = (text: string, at: number): number =>
  at < text.length && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800 ? at - 1 : at;
