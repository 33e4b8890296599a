// The columns of the trace list by name: their choice, order and widths.
import { describe, expect, it } from 'vitest';
import {
  columnsOf,
  movedColumn,
  namesOf,
  resizedColumn,
  toggledColumn,
  trackOf,
} from '../../../api/portal/web/lists/columns.ts';

describe('the columns of the trace list', () => {
  const columns = columnsOf(['cost_usd', 'name:240', 'agent_id']);

  it('are those of the names, in their order and with their widths', () => {
    expect(namesOf(columns)).toEqual(['cost_usd', 'name:240', 'agent_id']);
    expect(columns.map(trackOf)).toEqual(['84px', '240px', 'minmax(92px, 3fr)']);
  });

  it('leave out unknown and repeated names, and widths that are no number', () => {
    expect(namesOf(columnsOf(['nobody', 'name:wide', 'name']))).toEqual(['name']);
    expect(columnsOf(['nobody'])).toEqual(columnsOf(null));
  });

  it('have widths between 48 and 640 pixels', () => {
    expect(namesOf(columnsOf(['name:1', 'cost_usd:9999']))).toEqual(['name:48', 'cost_usd:640']);
  });

  it('show a further column at the end, and hide any but the last', () => {
    expect(namesOf(toggledColumn(columns, 'tags'))).toEqual(['cost_usd', 'name:240', 'agent_id', 'tags']);
    expect(namesOf(toggledColumn(columns, 'name'))).toEqual(['cost_usd', 'agent_id']);
    expect(namesOf(toggledColumn(columnsOf(['name']), 'name'))).toEqual(['name']);
  });

  it('move by one place and stay at the ends', () => {
    expect(namesOf(movedColumn(columns, 'cost_usd', 1))).toEqual(['name:240', 'cost_usd', 'agent_id']);
    expect(movedColumn(columns, 'cost_usd', -1)).toEqual(columns);
    expect(movedColumn(columns, 'agent_id', 1)).toEqual(columns);
  });

  it('have a fixed width once they are resized', () => {
    expect(namesOf(resizedColumn(columns, 'agent_id', 16))).toEqual(['cost_usd', 'name:240', 'agent_id:108']);
  });
});
