// `npm run portal:build`, and the child process in which `npm start` builds the portal. Takes the folder
// of the builds, without which it is that of `npm start`. Prints the folder of the build on standard
// output; a failure is one line on standard error and exit code 1.
import { leave } from '../../platform/leave.ts';
import { buildPortal } from './build.ts';

try {
  process.stdout.write(`${await buildPortal(process.argv[2])}\n`);
  leave(0);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  leave(1);
}
