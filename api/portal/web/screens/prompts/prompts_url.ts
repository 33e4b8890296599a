// The state of the prompt screen in the address: the version and the one it is compared with, the view,
// and the columns of the playground. Pure.
import { choice, codec, type Field, text } from '../../url/search_params.ts';

/** A column of the playground as far as it fits the address: the texts of drafts do not. */
export interface RunColumn {
  version: string;
  model: string;
  /** True: a draft that began as the version. */
  isDraft: boolean;
}

export const COLUMNS_MAX = 3;
const DRAFT = '~';

/** Columns as version@model, a draft with a tilde before it: `3@gpt-4o,~3@gpt-4o-mini`. */
function runs(): Field<readonly RunColumn[]> {
  return {
    parse: (raw) =>
      raw
        .split(',')
        .slice(0, COLUMNS_MAX)
        .flatMap((part) => {
          const at = part.indexOf('@');
          const isDraft = part.startsWith(DRAFT);
          const version = part.slice(isDraft ? 1 : 0, at < 0 ? undefined : at);
          return version === '' ? [] : [{ version, isDraft, model: at < 0 ? '' : decoded(part.slice(at + 1)) }];
        }),
    write: (columns) =>
      columns
        .map(({ version, model, isDraft }) => `${isDraft ? DRAFT : ''}${version}@${encodeURIComponent(model)}`)
        .join(','),
    fallback: [],
  };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const promptUrl = codec({
  version: text(),
  against: text(),
  view: choice(['template', 'usage', 'playground'], 'template'),
  runs: runs(),
});
export type PromptState = ReturnType<typeof promptUrl.parse>;

export const promptsUrl = codec({ name: text() });
