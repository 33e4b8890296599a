// Asks the worker for comparisons, one after another. The worker stays for the next one; it is ended
// when its time is up or when the caller of the running comparison goes.
import { ownWorker } from '../client/own_worker.ts';
import type { DiffQuestion } from './diff_worker.ts';
import workerAddress from './diff_worker.ts?worker&url';
import type { Diff } from './shape.ts';

/** The bounds of the comparison end it earlier; this is for a worker that does not answer. */
const DEADLINE_MS = 15_000;
/** Comparisons that wait; the oldest is refused past that. */
const WAITING_MAX = 200;

interface Job {
  question: DiffQuestion;
  resolve: (diff: Diff) => void;
  reject: (error: Error) => void;
}

let worker: Worker | null = null;
let running: Job | null = null;
let timer = 0;
const waiting: Job[] = [];

/**
 * Compares two texts in the worker.
 * @throws Error when the worker fails, takes longer than 15 seconds, or the signal aborts
 */
export function askDiff(question: DiffQuestion, signal: AbortSignal): Promise<Diff> {
  return new Promise((resolve, reject) => {
    const job: Job = { question, resolve, reject };
    signal.addEventListener('abort', () => {
      drop(job);
    });
    waiting.push(job);
    if (waiting.length > WAITING_MAX) waiting.shift()?.reject(new Error('Too many comparisons are waiting'));
    startNext();
  });
}

function startNext(): void {
  if (running !== null) return;
  running = waiting.shift() ?? null;
  if (running === null) return;
  worker ??= newWorker();
  timer = window.setTimeout(() => {
    end(new Error('The comparison took too long'));
  }, DEADLINE_MS);
  worker.postMessage(running.question);
}

function newWorker(): Worker {
  const made = ownWorker(workerAddress);
  made.onmessage = ({ data }: MessageEvent<Diff>) => {
    finish((job) => {
      job.resolve(data);
    });
  };
  made.onerror = ({ message }) => {
    end(new Error(message === '' ? 'The comparison failed' : message));
  };
  return made;
}

function finish(settle: (job: Job) => void): void {
  clearTimeout(timer);
  const job = running;
  running = null;
  if (job !== null) settle(job);
  startNext();
}

/** Ends the worker with the running comparison. */
function end(error: Error): void {
  worker?.terminate();
  worker = null;
  finish((job) => {
    job.reject(error);
  });
}

function drop(job: Job): void {
  const error = new Error('The comparison was ended');
  if (job === running) {
    end(error);
    return;
  }
  const at = waiting.indexOf(job);
  if (at < 0) return;
  waiting.splice(at, 1);
  job.reject(error);
}
