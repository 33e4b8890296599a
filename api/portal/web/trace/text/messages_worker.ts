// The worker that reads the messages of a large prompt.
import { readMessages } from './messages.ts';

addEventListener('message', ({ data }: MessageEvent<string>) => {
  postMessage(readMessages(data));
});
