// Asks the worker for the layout of a graph. The worker ends when it has answered, when its time is
// up, or when the caller goes.
import { ownWorker } from '../../client/own_worker.ts';
import type { GraphGiven, Layout } from './shape.ts';
import workerAddress from './layout_worker.ts?worker&url';

const DEADLINE_MS = 10_000;

/** @throws Error after 10 seconds, or when the signal aborts */
export async function layOut(graph: GraphGiven, signal: AbortSignal): Promise<Layout> {
  const worker = ownWorker(workerAddress);
  const ended = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
  try {
    return await new Promise((resolve, reject) => {
      ended.addEventListener('abort', () => {
        reject(new Error('The layout took too long'));
      });
      worker.onmessage = ({ data }: MessageEvent<Layout>) => {
        resolve(data);
      };
      worker.onerror = ({ message }) => {
        reject(new Error(message));
      };
      worker.postMessage(graph);
    });
  } finally {
    worker.terminate();
  }
}
