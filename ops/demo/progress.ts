// Progress of a long step: a bar in a terminal, a line every few seconds elsewhere.
import { Presets, SingleBar } from 'cli-progress';

export interface Progress {
  /** Moves to a value; `note` is appended to the line. */
  set(value: number, note?: string): void;
  end(): void;
}

const LINE_INTERVAL_MS = 2000;

export function startProgress(title: string, total: number, stream: NodeJS.WriteStream = process.stderr): Progress {
  return stream.isTTY ? bar(title, total, stream) : lines(title, total, stream);
}

function bar(title: string, total: number, stream: NodeJS.WriteStream): Progress {
  const single = new SingleBar(
    { format: `${title} {bar} {percentage}% | {value}/{total} {note}`, stream, hideCursor: true, gracefulExit: true },
    Presets.shades_classic,
  );
  single.start(total, 0, { note: '' });
  return {
    set: (value, note = '') => {
      single.update(value, { note });
    },
    end: () => {
      single.stop();
    },
  };
}

function lines(title: string, total: number, stream: NodeJS.WriteStream): Progress {
  let value = 0;
  let note = '';
  let printedAt = performance.now();
  const print = (): void => {
    stream.write(`${title} ${value}/${total}${note === '' ? '' : ` ${note}`}\n`);
  };
  return {
    set: (next, text = '') => {
      value = next;
      note = text;
      if (performance.now() - printedAt < LINE_INTERVAL_MS) return;
      printedAt = performance.now();
      print();
    },
    end: print,
  };
}
