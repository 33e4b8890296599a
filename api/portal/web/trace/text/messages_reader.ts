// Reads the messages of a large prompt in a worker, which ends when it has answered, when its time is
// up or when the caller goes.
import { ownWorker } from '../../client/own_worker.ts';
import type { Message } from './messages.ts';
import workerAddress from './messages_worker.ts?worker&url';

/** Texts below this many characters are read on the main thread: a worker would cost more. */
const WORKER_CHARS_MIN = 200_000;
const DEADLINE_MS = 30_000;

/**
 * Resolves to the messages of a prompt; null for a text that is no list of messages.
 * @throws Error after 30 seconds, or when the signal aborts
 */
export async function parseMessages(text: string, signal: AbortSignal): Promise<Message[] | null> {
  const worker = ownWorker(workerAddress);
  const ended = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
  try {
    return await new Promise((resolve, reject) => {
      ended.addEventListener('abort', () => {
        reject(new Error('Reading the messages was ended'));
      });
      worker.onmessage = ({ data }: MessageEvent<Message[] | null>) => {
        resolve(data);
      };
      worker.onerror = ({ message }) => {
        reject(new Error(message));
      };
      worker.postMessage(text);
    });
  } finally {
    worker.terminate();
  }
}

parseMessages.isSmall = (text: string): boolean => text.length < WORKER_CHARS_MIN;
