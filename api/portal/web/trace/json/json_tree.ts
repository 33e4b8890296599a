// A JSON value as rows of a tree, of which only the open parts exist: a node is made when its parent
// is opened. Long lists are cut into ranges of 1,000, so no step makes more nodes than that. Pure; it
// runs on the main thread for small values and in the worker for large ones.

/** Children shown without ranges between. */
const RANGE = 1000;
const PREVIEW_CHARS = 240;
const PREVIEW_ITEMS = 6;
/** A value with at most this many entries begins with two levels open. */
const OPEN_ENTRIES_MAX = 12;
/** A search stops after this many matches. */
export const JSON_MATCHES_MAX = 10_000;

export type JsonKind = 'object' | 'array' | 'range' | 'string' | 'number' | 'boolean' | 'null';

export interface JsonRow {
  /** Positions from the root down, which name the node to the functions below. */
  path: readonly number[];
  depth: number;
  /** Key or index in the parent; null for the root. */
  key: string | null;
  kind: JsonKind;
  preview: string;
  /** Number of entries, or of characters of a text. */
  size: number;
  isOpen: boolean;
  /** True for a text of which the preview is a part. */
  isCut: boolean;
  isMatch: boolean;
}

interface Node {
  key: string | null;
  value: unknown;
  /** Entries of the parent that a range holds. */
  range: readonly [from: number, to: number] | null;
  children: Node[] | null;
  /** Rows of the node and of what is open below it. */
  rows: number;
}

const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null;
const leaf = (key: string | null, value: unknown): Node => ({ key, value, range: null, children: null, rows: 1 });

function kindOf(node: Node): JsonKind {
  if (node.range !== null) return 'range';
  const { value } = node;
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return 'array';
  const type = typeof value;
  return type === 'object' || type === 'number' || type === 'boolean' ? type : 'string';
}

const keysOf = (value: object): readonly string[] | null => (Array.isArray(value) ? null : Object.keys(value));
const sizeOf = (value: object): number => (Array.isArray(value) ? value.length : Object.keys(value).length);

function previewOf(node: Node): string {
  const { value } = node;
  if (node.range !== null) return `${node.range[0]} … ${node.range[1] - 1}`;
  if (typeof value === 'string') return JSON.stringify(value.slice(0, PREVIEW_CHARS));
  if (!isContainer(value)) return String(value);
  const keys = keysOf(value);
  const size = keys?.length ?? (value as unknown[]).length;
  const shown = Array.from({ length: Math.min(size, PREVIEW_ITEMS) }, (_, i) => {
    const key = keys?.[i];
    const item: unknown = key === undefined ? (value as unknown[])[i] : (value as Record<string, unknown>)[key];
    const text = isContainer(item) ? (Array.isArray(item) ? '[…]' : '{…}') : shortOf(item);
    return key === undefined ? text : `${key}: ${text}`;
  });
  const more = size > PREVIEW_ITEMS ? ', …' : '';
  return keys === null ? `[${shown.join(', ')}${more}]` : `{ ${shown.join(', ')}${more} }`;
}

function shortOf(value: unknown): string {
  if (typeof value !== 'string') return String(value);
  return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
}

/** Makes the nodes of entries of a container, in ranges where they are many. */
function makeChildren(node: Node): Node[] {
  const { value } = node;
  if (!isContainer(value)) return [];
  const [from, to] = node.range ?? [0, sizeOf(value)];
  if (to - from > RANGE) {
    let width = RANGE;
    while ((to - from) / width > RANGE) width *= RANGE;
    return Array.from({ length: Math.ceil((to - from) / width) }, (_, i) => {
      const start = from + i * width;
      return { ...leaf(null, value), range: [start, Math.min(start + width, to)] as const };
    });
  }
  const keys = keysOf(value);
  return Array.from({ length: to - from }, (_, i) => {
    const key = keys?.[from + i] ?? String(from + i);
    return leaf(key, (value as Record<string, unknown>)[key]);
  });
}

export class JsonTree {
  readonly #root: Node;
  readonly #matches = new Set<string>();

  constructor(value: unknown) {
    this.#root = leaf(null, value);
    this.setOpen([], true);
    // One level more is open where it is small, since most texts are a list of a few objects.
    const first = this.#root.children ?? [];
    if (first.length <= OPEN_ENTRIES_MAX && first.every(({ range }) => range === null)) {
      for (const at of first.keys()) this.setOpen([at], true);
    }
  }

  /** Number of rows that are open. */
  get size(): number {
    return this.#root.rows;
  }

  #nodesTo(path: readonly number[]): Node[] {
    const nodes = [this.#root];
    for (const at of path) {
      const next = nodes.at(-1)?.children?.[at];
      if (next === undefined) break;
      nodes.push(next);
    }
    return nodes;
  }

  setOpen(path: readonly number[], isOpen: boolean): void {
    const nodes = this.#nodesTo(path);
    const node = nodes.at(-1);
    if (node === undefined || nodes.length !== path.length + 1 || !isContainer(node.value)) return;
    if ((node.children !== null) === isOpen) return;
    const before = node.rows;
    node.children = isOpen ? makeChildren(node) : null;
    node.rows = 1 + (node.children?.length ?? 0);
    for (const above of nodes.slice(0, -1)) above.rows += node.rows - before;
  }

  /** Returns the whole value of a node, as text. */
  textOf(path: readonly number[]): string {
    const value = this.#nodesTo(path).at(-1)?.value;
    return typeof value === 'string' ? value : JSON.stringify(value ?? null, null, 2);
  }

  rows(from: number, to: number): JsonRow[] {
    const rows: JsonRow[] = [];
    for (let at = Math.max(0, from); at < Math.min(to, this.size); at += 1) {
      const row = this.#rowAt(at);
      if (row !== null) rows.push(row);
    }
    return rows;
  }

  #rowAt(index: number): JsonRow | null {
    let node = this.#root;
    let left = index;
    const path: number[] = [];
    while (left > 0) {
      left -= 1;
      const children: readonly Node[] = node.children ?? [];
      let at = 0;
      let child = children[at];
      while (child !== undefined && left >= child.rows) {
        left -= child.rows;
        at += 1;
        child = children[at];
      }
      if (child === undefined) return null;
      path.push(at);
      node = child;
    }
    const { value } = node;
    const size =
      node.range === null ? (isContainer(value) ? sizeOf(value) : textSize(value)) : node.range[1] - node.range[0];
    return {
      path,
      depth: path.length,
      key: node.key,
      kind: kindOf(node),
      preview: previewOf(node),
      size,
      isOpen: node.children !== null,
      isCut: typeof value === 'string' && value.length > PREVIEW_CHARS,
      isMatch: this.#matches.has(path.join()),
    };
  }

  /** Returns the index of the row of a node, whose ancestors are opened. */
  reveal(path: readonly number[]): number {
    for (let depth = 0; depth < path.length; depth += 1) this.setOpen(path.slice(0, depth), true);
    let row = 0;
    this.#nodesTo(path).forEach((node, depth) => {
      if (depth >= path.length) return;
      const at = path[depth] ?? 0;
      row += 1;
      for (let before = 0; before < at; before += 1) row += node.children?.[before]?.rows ?? 0;
    });
    return row;
  }

  /** Returns the paths of the nodes whose key or value contains a text, whatever its case, in order. */
  find(text: string): number[][] {
    this.#matches.clear();
    const wanted = text.toLowerCase();
    if (wanted === '') return [];
    const found: number[][] = [];
    const stack: { node: Node; path: number[] }[] = [{ node: leaf(null, this.#root.value), path: [] }];
    for (let next = stack.pop(); next !== undefined && found.length < JSON_MATCHES_MAX; next = stack.pop()) {
      const { node, path } = next;
      const inKey = node.key?.toLowerCase().includes(wanted) ?? false;
      const inValue = !isContainer(node.value) && String(node.value).toLowerCase().includes(wanted);
      if (inKey || inValue) {
        found.push(path);
        this.#matches.add(path.join());
      }
      const children = makeChildren(node);
      for (let at = children.length - 1; at >= 0; at -= 1) {
        const child = children[at];
        if (child !== undefined) stack.push({ node: child, path: [...path, at] });
      }
    }
    return found;
  }
}

const textSize = (value: unknown): number => (typeof value === 'string' ? value.length : 0);
