// Watches the source folders of the service for `npm run dev`. It reports changes of TypeScript,
// CSS, SQL and Avro files, and combines changes in quick succession into one; it does not watch test/.
import { type FSWatcher, watch } from 'node:fs';
import path from 'node:path';

const FOLDERS = ['api', 'ops', 'pipeline', 'schemas', 'sql'] as const;
const SOURCE_FILE = /\.(ts|tsx|css|sql|avsc)$/;
/**
 * An editor or a checkout writes many files in a row. They count as one change, which ends when
 * nothing was written for this long.
 */
const QUIET_MS = 200;

/**
 * Calls `onChange` after source files have changed, until the returned function is called.
 * @param root folder of the repository
 * @param onChange gets one changed file of each group of changes, relative to the root
 * @returns a function that stops watching
 */
export function watchSource(root: string, onChange: (file: string) => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const watchers: FSWatcher[] = FOLDERS.map((folder) =>
    watch(path.join(root, folder), { recursive: true }, (_event, name) => {
      if (name === null || !SOURCE_FILE.test(name)) return;
      clearTimeout(timer);
      timer = setTimeout(onChange, QUIET_MS, path.join(folder, name));
    }),
  );
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  };
}
