// Opens the portal in the browser of a desktop. The link holds a login ticket, and the arguments of a process can be read
// by every user of the machine; so the browser is given a file that only this user can read, which leads to the link.
import { spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** The browser has read the file long before; a file that stays holds a ticket that is used or expires. */
const FILE_MS = 60_000;

export interface Surroundings {
  platform: NodeJS.Platform;
  env: Readonly<Record<string, string | undefined>>;
  /** True if the output goes to a terminal. */
  isTerminal: boolean;
}

/** Returns the command that opens a file on this desktop; null where there is no desktop, or its user is elsewhere (SSH). */
export function desktopOpener({ platform, env, isTerminal }: Surroundings): string | null {
  const isSet = (name: string): boolean => env[name] !== undefined && env[name] !== '';
  if (!isTerminal || ['SSH_CONNECTION', 'SSH_CLIENT', 'SSH_TTY', 'CI'].some(isSet)) return null;
  if (platform === 'darwin') return 'open';
  return platform === 'linux' && ['DISPLAY', 'WAYLAND_DISPLAY'].some(isSet) ? 'xdg-open' : null;
}

/** Writes the file that leads to the link, and returns its path. Only this user can read it. */
export function writeRedirect(runDir: string, link: string): string {
  const file = path.join(runDir, 'login.html');
  // An existing file would keep its own mode.
  rmSync(file, { force: true });
  writeFileSync(
    file,
    `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Millrace</title><meta http-equiv="refresh" content="0;url=${link}">\n`,
    { mode: 0o600, flag: 'wx' },
  );
  return file;
}

/** Opens the link with the desktop's command. A browser that does not open is no problem: the terminal shows the link. */
export function openBrowser(opener: string, runDir: string, link: string): void {
  const file = writeRedirect(runDir, link);
  spawn(opener, [file], { detached: true, stdio: 'ignore' })
    .on('error', () => undefined)
    .unref();
  setTimeout(() => {
    rmSync(file, { force: true });
  }, FILE_MS).unref();
}
