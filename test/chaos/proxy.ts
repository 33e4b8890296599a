// A TCP proxy between two parts of the service that fails as networks do: cut (connections break
// and none can be opened), stalled (they stay open, and no byte passes), half-open (the server
// receives nothing from its clients, which do not notice).
import { createServer, connect, type Server, type Socket } from 'node:net';

export type ProxyMode = 'pass' | 'cut' | 'stalled' | 'half-open';

interface Pair {
  client: Socket;
  server: Socket;
}

export class Proxy {
  readonly #port: number;
  readonly #targetPort: number;
  readonly #pairs = new Set<Pair>();
  #server: Server | null = null;
  #mode: ProxyMode = 'pass';

  /** @param port its own port on loopback @param targetPort the port that it connects to */
  constructor(port: number, targetPort: number) {
    this.#port = port;
    this.#targetPort = targetPort;
  }

  get port(): number {
    return this.#port;
  }

  async open(): Promise<void> {
    const server = createServer({ pauseOnConnect: true }, (client) => {
      this.#join(client);
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, '127.0.0.1', () => {
        resolve();
      });
    });
    this.#server = server;
  }

  /**
   * Sets the mode from now on. Back in `pass`, broken connections can be opened again; stalled ones
   * continue with the buffered bytes.
   */
  set(mode: ProxyMode): void {
    this.#mode = mode;
    for (const pair of this.#pairs) this.#apply(pair);
  }

  async close(): Promise<void> {
    this.set('cut');
    await new Promise<void>((resolve) => {
      if (this.#server === null) resolve();
      else
        this.#server.close(() => {
          resolve();
        });
    });
  }

  #join(client: Socket): void {
    client.on('error', () => undefined);
    if (this.#mode === 'cut') {
      client.resetAndDestroy();
      return;
    }
    const server = connect({ port: this.#targetPort, host: '127.0.0.1', noDelay: true });
    client.setNoDelay(true);
    const pair = { client, server };
    this.#pairs.add(pair);
    server.on('error', () => undefined);
    const end = (): void => {
      this.#pairs.delete(pair);
      client.destroy();
      server.destroy();
    };
    client.on('close', end);
    server.on('close', end);
    server.once('connect', () => {
      this.#pipe(client, server);
      this.#pipe(server, client);
      this.#apply(pair);
    });
  }

  #pipe(from: Socket, to: Socket): void {
    from.on('data', (bytes: Buffer) => {
      if (!to.write(bytes)) from.pause();
    });
    from.on('end', () => to.end());
    to.on('drain', () => {
      if (this.#flows(from)) from.resume();
    });
  }

  /**
   * Returns whether bytes of this side pass now. In half-open connections the server's answers do,
   * and clients' bytes do not.
   */
  #flows(from: Socket): boolean {
    if (this.#mode === 'pass') return true;
    return this.#mode === 'half-open' && [...this.#pairs].some(({ server }) => server === from);
  }

  #apply({ client, server }: Pair): void {
    if (this.#mode === 'cut') {
      client.resetAndDestroy();
      server.resetAndDestroy();
      return;
    }
    for (const side of [client, server]) {
      if (this.#flows(side)) side.resume();
      else side.pause();
    }
  }
}
