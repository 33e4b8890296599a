// Where a JSON viewer gets its rows: from a value on the main thread, or from the worker that parsed
// a large text. Both answer the same questions; a row that the worker has not sent yet is null.
import { ownWorker } from '../../client/own_worker.ts';
import { type JsonRow, JsonTree } from './json_tree.ts';
import workerAddress from './json_worker.ts?worker&url';

/** Texts above this many characters are parsed in the worker. */
export const WORKER_CHARS_MIN = 200_000;
/** Rows that are asked for together. */
const PAGE = 100;

export interface JsonSource {
  subscribe: (listener: () => void) => () => void;
  /** Number that changes with every change. */
  version: () => number;
  size: () => number;
  row: (index: number) => JsonRow | null;
  setOpen: (path: readonly number[], isOpen: boolean) => void;
  /** Resolves to the paths of the matches, in order. */
  find: (text: string) => Promise<readonly (readonly number[])[]>;
  /** Opens the way to a node and resolves to the index of its row. */
  reveal: (path: readonly number[]) => Promise<number>;
  textOf: (path: readonly number[]) => Promise<string>;
  end: () => void;
}

class Signal {
  readonly #listeners = new Set<() => void>();
  #version = 0;

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  version = (): number => this.#version;

  changed(): void {
    this.#version += 1;
    for (const listener of this.#listeners) listener();
  }
}

/** Shows a value that is parsed already. */
export function localSource(value: unknown): JsonSource {
  const tree = new JsonTree(value);
  const signal = new Signal();
  return {
    subscribe: signal.subscribe,
    version: signal.version,
    size: () => tree.size,
    row: (index) => tree.rows(index, index + 1)[0] ?? null,
    setOpen: (path, isOpen) => {
      tree.setOpen(path, isOpen);
      signal.changed();
    },
    find: (text) => {
      const found = tree.find(text);
      signal.changed();
      return Promise.resolve(found);
    },
    reveal: (path) => {
      const row = tree.reveal(path);
      signal.changed();
      return Promise.resolve(row);
    },
    textOf: (path) => Promise.resolve(tree.textOf(path)),
    end: () => undefined,
  };
}

export type Question =
  | { id: number; ask: 'parse'; text: string }
  | { id: number; ask: 'rows'; from: number; to: number }
  | { id: number; ask: 'open'; path: readonly number[]; isOpen: boolean }
  | { id: number; ask: 'find'; text: string }
  | { id: number; ask: 'reveal' | 'text'; path: readonly number[] };
/** `size` is the number of open rows after the question was answered. */
export interface Reply {
  id: number;
  size: number;
  result: unknown;
  error?: string;
}
type Asked = Question extends infer Q ? (Q extends unknown ? Omit<Q, 'id'> : never) : never;

class WorkerSource implements JsonSource {
  readonly #worker = ownWorker(workerAddress);
  readonly #signal = new Signal();
  readonly #waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
  readonly #rows = new Map<number, JsonRow>();
  readonly #asked = new Set<number>();
  #size = 0;
  #last = 0;

  subscribe = this.#signal.subscribe;
  version = this.#signal.version;

  constructor() {
    this.#worker.onmessage = ({ data }: MessageEvent<Reply>) => {
      this.#size = data.size;
      const waiting = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      if (data.error === undefined) waiting?.resolve(data.result);
      else waiting?.reject(new Error(data.error));
    };
  }

  ask(question: Asked): Promise<unknown> {
    this.#last += 1;
    const id = this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ ...question, id });
    });
  }

  /** Forgets the rows, which have other indexes after something was opened or closed. */
  #forget(): void {
    this.#rows.clear();
    this.#asked.clear();
    this.#signal.changed();
  }

  size = (): number => this.#size;

  row = (index: number): JsonRow | null => {
    const page = Math.floor(index / PAGE);
    if (!this.#asked.has(page)) {
      this.#asked.add(page);
      void this.ask({ ask: 'rows', from: page * PAGE, to: (page + 1) * PAGE }).then((rows) => {
        (rows as JsonRow[]).forEach((row, at) => this.#rows.set(page * PAGE + at, row));
        this.#signal.changed();
      });
    }
    return this.#rows.get(index) ?? null;
  };

  setOpen = (path: readonly number[], isOpen: boolean): void => {
    void this.ask({ ask: 'open', path, isOpen }).then(() => {
      this.#forget();
    });
  };

  find = async (text: string): Promise<readonly (readonly number[])[]> => {
    const found = (await this.ask({ ask: 'find', text })) as number[][];
    this.#forget();
    return found;
  };

  reveal = async (path: readonly number[]): Promise<number> => {
    const row = (await this.ask({ ask: 'reveal', path })) as number;
    this.#forget();
    return row;
  };

  textOf = async (path: readonly number[]): Promise<string> => (await this.ask({ ask: 'text', path })) as string;

  end = (): void => {
    this.#worker.terminate();
  };
}

/**
 * Parses a text and returns its rows; large texts in a worker, which end() stops.
 * @throws SyntaxError or Error if the text is not JSON
 */
export async function parseSource(text: string): Promise<JsonSource> {
  if (text.length < WORKER_CHARS_MIN) return localSource(JSON.parse(text));
  const source = new WorkerSource();
  try {
    await source.ask({ ask: 'parse', text });
    return source;
  } catch (error) {
    source.end();
    throw error;
  }
}
