// TCP ports: finds a free one, and checks whether one is free.
import { type Server, createServer } from 'node:net';

function listen(host: string, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ host, port, exclusive: true }, () => {
      resolve(server);
    });
  });
}

const close = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => {
      resolve();
    });
  });

/**
 * Returns why no process can listen on a port now (EADDRINUSE, EACCES, EADDRNOTAVAIL, ENOTFOUND …);
 * null if it is free.
 */
export async function whyNotFree(host: string, port: number): Promise<string | null> {
  try {
    await close(await listen(host, port));
    return null;
  } catch (error) {
    return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : String(error);
  }
}

/** Returns a port that was free a moment ago. */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  const server = await listen(host, 0);
  const address = server.address();
  await close(server);
  if (address === null || typeof address === 'string') throw new Error(`no TCP port on ${host}`);
  return address.port;
}
