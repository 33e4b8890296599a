// The script of the reference page, as text: the page carries it inline, and its Content-Security-Policy names its hash.
import { readFileSync } from 'node:fs';

export const DOCS_SCRIPT = readFileSync(new URL('./docs_search.js', import.meta.url), 'utf8');
