// When a start opens the browser, and the file that leads it to the portal.
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { desktopOpener, type Surroundings, writeRedirect } from '../../../ops/launch/open_browser.ts';
import { removeDir, tempDir } from '../../support/temp.ts';

const desktop: Surroundings = { platform: 'linux', env: { DISPLAY: ':0' }, isTerminal: true };

describe('desktopOpener', () => {
  it.each<[string, Partial<Surroundings>, string | null]>([
    ['a Linux desktop with X11', {}, 'xdg-open'],
    ['a Linux desktop with Wayland', { env: { WAYLAND_DISPLAY: 'wayland-0' } }, 'xdg-open'],
    ['a Mac', { platform: 'darwin', env: {} }, 'open'],
    ['a Linux server without a display', { env: {} }, null],
    ['an empty display', { env: { DISPLAY: '' } }, null],
    ['a session over SSH', { env: { DISPLAY: ':0', SSH_CONNECTION: '10.0.0.1 1 10.0.0.2 22' } }, null],
    ['a Mac over SSH', { platform: 'darwin', env: { SSH_TTY: '/dev/ttys001' } }, null],
    ['continuous integration', { env: { DISPLAY: ':0', CI: 'true' } }, null],
    ['output that goes to a file', { isTerminal: false }, null],
    ['another system', { platform: 'freebsd' }, null],
  ])('the command on %s', (_, more, command) => {
    expect(desktopOpener({ ...desktop, ...more })).toBe(command);
  });
});

describe('the redirect file', () => {
  let folder: string;
  beforeAll(() => {
    folder = tempDir('redirect');
  });
  afterAll(() => {
    removeDir(folder);
  });

  it('the file leads to the link and only its user can read it, also where another one was before', () => {
    writeFileSync(path.join(folder, 'login.html'), 'old', { mode: 0o644 });
    const file = writeRedirect(folder, 'http://127.0.0.1:8080/login#ticket');
    expect(readFileSync(file, 'utf8')).toContain('content="0;url=http://127.0.0.1:8080/login#ticket"');
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});
