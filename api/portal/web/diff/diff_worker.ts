// The worker that compares two texts.
import { jsonDiff } from './json_diff.ts';
import type { DiffForm } from './shape.ts';
import { textDiff } from './text_diff.ts';

export interface DiffQuestion {
  form: DiffForm;
  left: string;
  right: string;
}

addEventListener('message', ({ data: { form, left, right } }: MessageEvent<DiffQuestion>) => {
  postMessage(form === 'json' ? jsonDiff(left, right) : textDiff(left, right));
});
