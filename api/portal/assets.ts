// The portal's built files in one folder, which `npm start` makes beside the start of everything else: the folder appears
// when it is whole, or a file `<folder>.failed` with the reason appears. Takes the folder; returns the files under their
// hashed names and the page that loads them. A file is found by name in the list of the folder; no name is joined to a
// path before that.
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import type { Coding } from '../http/accept_encoding.ts';
import { portalHtml } from './html.ts';
import type { PortalPage } from './pages.ts';

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.wasm': 'application/wasm',
};
const ENDINGS: Readonly<Record<Coding, string>> = { br: '.br', gzip: '.gz' };
/** Names that are written into the page, which needs no escapes therefore. */
const FILE_NAME = /^assets\/[A-Za-z0-9_.-]+$/;
const ENTRY = 'main.tsx';
/** Entry that starts the first requests before the other scripts are there. */
const EARLY = 'early.ts';
/** Key of the one style sheet of all pages. */
const STYLES = 'style.css';
/** End of the key of the font of the interface, which the page fetches before the style sheet names it. */
const FONT = 'inter-latin-wght-normal.woff2';
const FAILURE_CHARS_MAX = 4000;

const fileName = z.string().regex(FILE_NAME);
const manifestShape = z.record(
  z.string(),
  z.looseObject({
    file: fileName,
    /** Keys of the chunks that this one imports. */
    imports: z.array(z.string()).default([]),
  }),
);
type Manifest = z.infer<typeof manifestShape>;

/** A whole build. */
export interface Build {
  manifest: Manifest;
  /** Names below assets/. */
  files: ReadonlySet<string>;
}

export interface PortalFile {
  type: string;
  /** Codings in which the file is stored. */
  codings: Coding[];
  /** Reads the file; in one of its codings, or as it is. */
  read: (coding: Coding | null) => Promise<Buffer>;
}

export class PortalFiles {
  readonly #folder: string;
  #build: Build | null = null;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Returns the build once it is whole; until then, null or the reason for which there will be none.
   * @throws Error when the folder cannot be read, or holds no build
   */
  async build(): Promise<Build | { failed: string } | null> {
    if (this.#build !== null) return this.#build;
    const manifest = await readText(path.join(this.#folder, 'manifest.json'));
    if (manifest === null) {
      const failed = await readText(`${this.#folder}.failed`);
      return failed === null ? null : { failed: failed.slice(0, FAILURE_CHARS_MAX) };
    }
    const files = new Set(await readdir(path.join(this.#folder, 'assets')));
    this.#build = { manifest: manifestShape.parse(JSON.parse(manifest)), files };
    return this.#build;
  }

  /** Returns a file by its name below assets/; null where the build has none of this name. */
  async file(name: string): Promise<PortalFile | null> {
    const build = await this.build();
    const type = TYPES[path.extname(name)];
    if (build === null || 'failed' in build || type === undefined || !build.files.has(name)) return null;
    const codings = (['br', 'gzip'] as const).filter((coding) => build.files.has(name + ENDINGS[coding]));
    const full = path.join(this.#folder, 'assets', name);
    return { type, codings, read: (coding) => readFile(coding === null ? full : full + ENDINGS[coding]) };
  }
}

/**
 * Returns the page that loads the portal, with the files that the asked page needs named for an early fetch.
 * @throws Error when the build has no entry
 */
export function pageOf({ manifest }: Build, page: PortalPage | null): string {
  const [entry, early] = [manifest[ENTRY], manifest[EARLY]];
  if (entry === undefined || early === undefined)
    throw new Error(`the build of the portal has no entry ${entry === undefined ? ENTRY : EARLY}`);
  const screen = page === null ? undefined : `screens/${page.screen}.tsx`;
  const chunks = withImports(manifest, [ENTRY, ...(screen === undefined ? [] : [screen])]);
  return portalHtml({
    early: early.file,
    entry: entry.file,
    styles: manifest[STYLES]?.file ?? null,
    font: Object.entries(manifest).find(([key]) => key.endsWith(FONT))?.[1].file ?? null,
    modules: [...new Set(chunks.map(({ file }) => file))].filter((file) => file !== entry.file && file.endsWith('.js')),
  });
}

/** Returns the chunks of these keys with everything that they import. */
function withImports(manifest: Manifest, keys: readonly string[]): Manifest[string][] {
  const found = new Map<string, Manifest[string]>();
  const wanted = [...keys];
  for (let key = wanted.shift(); key !== undefined; key = wanted.shift()) {
    const chunk = manifest[key];
    if (chunk === undefined || found.has(key)) continue;
    found.set(key, chunk);
    wanted.push(...chunk.imports);
  }
  return [...found.values()];
}

async function readText(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
