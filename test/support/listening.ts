// What answers requests, on a port of its own for as long as a test asks it.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { closeGracefully, httpServer, listen } from '../../api/http/server.ts';

export async function listening<T>(
  listener: (req: IncomingMessage, res: ServerResponse) => void,
  ask: (url: string) => Promise<T>,
): Promise<T> {
  const server = httpServer(listener);
  const port = await listen(server, '127.0.0.1', 0);
  try {
    return await ask(`http://127.0.0.1:${String(port)}`);
  } finally {
    await closeGracefully(server);
  }
}
