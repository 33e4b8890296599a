// The recording from which the pictures of pages are taken: answers of the API, the moment that the clock of the pages
// shows, and what drew the pictures.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export const PICTURES_DIR = path.resolve(import.meta.dirname, '../pictures');
const RECORDING_FILE = path.join(PICTURES_DIR, 'recording.json');

export interface RecordedAnswer {
  status: number;
  content_type: string;
  body: string;
}

/** Answers by request, such as `GET /v1/traces?limit=100`. */
export type Answers = Record<string, RecordedAnswer>;

/** Properties of the browser and its system on which the pixels of a page depend. */
export interface Drawer {
  /** Version of the browser. */
  chromium: string;
  /** Width of an arrow, which no font of the portal has, so that a font of the system draws it. */
  arrow: number;
}

export interface Recording {
  /** The browser that took the pictures. */
  drawn_by: Drawer;
  /** Time at which the clock of the pages stands, ISO 8601. */
  now: string;
  /** Address of each page, by the name of its pictures. */
  pages: Record<string, string>;
  answers: Answers;
}

export const readRecording = (): Recording => JSON.parse(readFileSync(RECORDING_FILE, 'utf8')) as Recording;

/** Stores a recording, one answer a line. */
export function writeRecording({ answers, ...head }: Recording): void {
  mkdirSync(PICTURES_DIR, { recursive: true });
  const lines = Object.entries(answers)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, answer]) => `    ${JSON.stringify(name)}: ${JSON.stringify(answer)}`);
  const fields = Object.entries(head).map(([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)},`);
  writeFileSync(RECORDING_FILE, `{\n${fields.join('\n')}\n  "answers": {\n${lines.join(',\n')}\n  }\n}\n`);
}
