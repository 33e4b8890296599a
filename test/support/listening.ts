// Serves a request listener on a free port while a test sends it requests.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { closeGracefully, httpServer, listen } from '../../api/http/server.ts';

export async function listening<T>(
  listener: (req: IncomingMessage, res: ServerResponse) => void,
  ask: (url: string) => Promise<T>,
): Promise<T> {
  const server = httpServer(listener);
  const port = await listen(server, '127.0.0.1', 0);
  try {
    return await ask(`http://127.0.0.1:${port}`);
  } finally {
    await closeGracefully(server);
  }
}
