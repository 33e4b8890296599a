// The state of the trace screen in the address: selected span, view, tab of the panel, text that is
// looked for, and the part of the time in sight.
import { codec, choice, type Field, text } from '../../url/search_params.ts';

export const VIEWS = ['waterfall', 'graph', 'conversation', 'json'] as const;
export type ViewName = (typeof VIEWS)[number];

export const TABS = ['messages', 'io', 'attributes', 'events', 'scores', 'raw'] as const;
export type TabName = (typeof TABS)[number];

/** A stretch of the trace in milliseconds from its start. */
export interface Zoom {
  from: number;
  to: number;
}

/** Reads and writes a stretch such as 1200-1840.5. */
function zoomField(): Field<Zoom | null> {
  return {
    parse: (raw) => {
      const [, from, to] = /^(\d{1,12}(?:\.\d{1,3})?)-(\d{1,12}(?:\.\d{1,3})?)$/.exec(raw) ?? [];
      const zoom = { from: Number(from), to: Number(to) };
      return zoom.from < zoom.to ? zoom : undefined;
    },
    write: (zoom) => (zoom === null ? '' : `${rounded(zoom.from)}-${rounded(zoom.to)}`),
    fallback: null,
  };
}

const rounded = (ms: number): number => Math.round(ms * 1000) / 1000;

export const traceUrl = codec({
  span: text(),
  view: choice(VIEWS, 'waterfall'),
  tab: choice(TABS, 'messages'),
  find: text(),
  zoom: zoomField(),
});
