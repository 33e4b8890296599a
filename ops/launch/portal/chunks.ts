// Which chunk of a build a module of the pages goes into. By itself the bundler makes a chunk for each set of
// pages that share a module, which gives a hundred small files that compress badly. Here the modules that only
// the pages of one folder of screens/ use are one chunk; modules of several folders stay with the bundler.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Rolldown } from 'vite';

/** Screens with chunks of their own: they open most often, and load their dialogs when these are asked for. */
const APART = new Set(['traces', 'trace']);
/** Pages and dialogs that load a module by themselves, from which on it belongs to the parts of most pages. */
const SHARED_MIN = 16;
/** Modules of the entry that starts the first requests. */
const EARLY = /\/web\/(?:early|client\/early_requests)\.ts$/;
const FOLDER = /\/screens\/([a-z_]+)\/[^/]/;
const SCREEN = /^screens\/\w+\/\w+_screen\.tsx$/;
/** The table of pages, whose imports load a screen when it is shown. */
const ROUTES = '/shell/routes.tsx';

/** Returns the groups for Rolldown's output.codeSplitting. */
export function chunkGroups(): Rolldown.CodeSplittingGroup[] {
  const owners = new Map<string, string | null>();
  return [
    // The first requests start before the file with everything else is there.
    { name: 'early', test: EARLY, priority: 3 },
    // Everything before the first paint is one file.
    { name: 'frame', tags: ['$initial'], priority: 2 },
    // What most pages share is one file, too: a page then asks for half as many.
    { name: 'parts', minShareCount: SHARED_MIN, priority: 1 },
    {
      name: (id, modules) => ownerOf(id, modules, owners),
      // A module that these need and that others need too stays with the bundler.
      includeDependenciesRecursively: false,
    },
  ];
}

/** Returns the folder of screens/ whose modules alone import a module; null where there is no such folder. */
function ownerOf(id: string, modules: Rolldown.ChunkingContext, owners: Map<string, string | null>): string | null {
  const known = owners.get(id);
  if (known !== undefined) return known;
  const folder = folderOf(id);
  // Where modules import each other, the answer for the first one is that of its folder.
  owners.set(id, folder);
  const info = modules.getModuleInfo(id);
  const [importer] = info?.importers ?? [];
  const owner = folder ?? (importer === undefined ? null : ownerOf(importer, modules, owners));
  const isOwn =
    info !== null &&
    owner !== null &&
    !APART.has(owner) &&
    info.importers.every((one) => ownerOf(one, modules, owners) === owner) &&
    info.dynamicImporters.every((one) => folder !== null && (folderOf(one) === folder || one.endsWith(ROUTES)));
  owners.set(id, isOwn ? owner : null);
  return isOwn ? owner : null;
}

const folderOf = (id: string): string | null => FOLDER.exec(id)?.[1] ?? null;

/**
 * Adds the screens that share a chunk to manifest.json, under the names of their sources. Vite leaves them out, and the
 * server would name none of their files for an early fetch.
 */
export function nameScreens(folder: string, web: string, output: readonly Rolldown.OutputBundle[string][]): void {
  const file = path.join(folder, 'manifest.json');
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as Record<string, { file: string }>;
  const byFile = new Map(Object.values(manifest).map((chunk) => [chunk.file, chunk]));
  for (const chunk of output) {
    const entry = byFile.get(chunk.fileName);
    if (chunk.type !== 'chunk' || chunk.isEntry || entry === undefined) continue;
    const names = chunk.moduleIds.map((id) => path.relative(web, id).replaceAll(path.sep, '/'));
    for (const name of names) if (SCREEN.test(name)) manifest[name] ??= entry;
  }
  writeFileSync(file, JSON.stringify(manifest, null, 2));
}
