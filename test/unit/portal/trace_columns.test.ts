// The row that is read ahead, and the width of the names.
import { describe, expect, it } from 'vitest';
import { NAME_PX_MAX, NAME_PX_MIN, nameWidth, widthByKey } from '../../../api/portal/web/screens/trace/name_width.ts';
import { rowAhead } from '../../../api/portal/web/trace/model/ahead.ts';

describe('the row that is read ahead', () => {
  const rows = Int32Array.of(4, 7, -1, 9);

  it('is the next one on opening and while the person moves down', () => {
    expect(rowAhead(rows, 7, 7)).toBe(-1);
    expect(rowAhead(rows, 4, 7)).toBe(-1);
    expect(rowAhead(rows, 100, 7)).toBe(-1);
  });

  it('is the one above while the person moves up', () => {
    expect(rowAhead(rows, 9, -1)).toBe(7);
  });

  it('is none at an end of the rows, and for a row that is not shown', () => {
    expect(rowAhead(rows, -1, 9)).toBeNull();
    expect(rowAhead(rows, 7, 4)).toBeNull();
    expect(rowAhead(rows, 4, 100)).toBeNull();
  });
});

describe('the width of the names', () => {
  it('changes by arrow keys, and by Home and End, within its bounds', () => {
    expect(widthByKey('ArrowRight', 200)).toBeGreaterThan(200);
    expect(widthByKey('ArrowLeft', 200)).toBeLessThan(200);
    expect([widthByKey('Home', 500), widthByKey('End', 500)]).toEqual([NAME_PX_MIN, NAME_PX_MAX]);
    expect(widthByKey('ArrowLeft', NAME_PX_MIN)).toBe(NAME_PX_MIN);
    expect(widthByKey('ArrowDown', 200)).toBeNull();
  });

  it('is the default of the style sheet until the person sets one, and leaves room for the bars', () => {
    expect(nameWidth(null)).toBeUndefined();
    expect(nameWidth(320)).toBe('min(320px, 60cqi)');
  });
});
