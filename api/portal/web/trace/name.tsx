// Names that users gave, in one line: isolated from the direction of their surroundings, with hidden
// characters made visible, so that a name can neither break the layout nor pretend to be another one.
import type { ReactElement } from 'react';
import type { ShownKind } from './model/outline.ts';
import { oneLine } from './text/one_line.ts';

export const KIND_WORDS: Record<ShownKind, string> = {
  llm: 'model call',
  tool: 'tool',
  event: 'event',
  app: 'app event',
  judge: 'judge call',
};

export function Name({ children }: { children: string }): ReactElement {
  return <bdi>{oneLine(children)}</bdi>;
}

/** Name of a span; spans may be sent with an empty one. */
export const shownName = (name: string): string => (name === '' ? '(no name)' : name);
