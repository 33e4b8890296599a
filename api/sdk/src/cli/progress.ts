// A progress bar on standard error, shown only where that is a terminal.
import { count } from './output.ts';

const DRAW_EVERY_MS = 100;
const BAR_WIDTH = 24;

export class Progress {
  readonly #isShown: boolean;
  readonly #err: NodeJS.WriteStream;
  readonly #startedAt = Date.now();
  readonly #what: string;
  #drawnAt = 0;

  /** @param what what is counted, for example `spans` */
  constructor(what: string, err = process.stderr) {
    this.#what = what;
    this.#err = err;
    this.#isShown = err.isTTY;
  }

  /**
   * Shows how far the work is.
   * @param total null where it is not known
   */
  show(done: number, total: number | null, items = done): void {
    const now = Date.now();
    if (!this.#isShown || now - this.#drawnAt < DRAW_EVERY_MS) return;
    this.#drawnAt = now;
    const seconds = Math.max(0.001, (now - this.#startedAt) / 1000);
    const rate = `${count(items)} ${this.#what}, ${count(Math.round(items / seconds))}/s`;
    const share = total === null || total === 0 ? null : Math.min(1, done / total);
    const left = share === null || share === 0 ? '' : `, ${count(Math.ceil((seconds / share) * (1 - share)))} s left`;
    const bar = share === null ? '' : `${barOf(share)} ${String(Math.floor(share * 100)).padStart(3)} %  `;
    this.#err.write(`\r\u001b[2K${bar}${rate}${left}`);
  }

  /** Removes the bar. */
  end(): void {
    if (this.#isShown && this.#drawnAt > 0) this.#err.write('\r\u001b[2K');
  }
}

function barOf(share: number): string {
  const full = Math.round(share * BAR_WIDTH);
  return `[${'#'.repeat(full)}${'-'.repeat(BAR_WIDTH - full)}]`;
}
