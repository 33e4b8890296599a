// Confines the engine's process to its own files, by Linux's Landlock, which needs no root and which nothing in the process can lift.
// Why: in this mode of the engine the scalar function file() reads any file that the process can, for every user, whatever is
// granted; secrets.json and the environment of the API are such files.
// Comes in: which folders. Goes out: whether this thread, and all that it will start or become, is confined now.
import { closeSync, constants, existsSync, openSync, statSync } from 'node:fs';
import { DataType, load, open } from 'ffi-rs';

const SYS_CREATE_RULESET = 444;
const SYS_ADD_RULE = 445;
const SYS_RESTRICT_SELF = 446;
const PR_SET_NO_NEW_PRIVS = 38;
const RULE_PATH_BENEATH = 1;
const CREATE_RULESET_VERSION = 1;
/** The first version that can allow renames and links between folders, which the engine makes. */
const ABI_MIN = 2;
const ABI_TRUNCATE = 3;

const EXECUTE = 1n << 0n;
const WRITE_FILE = 1n << 1n;
const READ_FILE = 1n << 2n;
const READ_DIR = 1n << 3n;
const TRUNCATE = 1n << 14n;
/** Removing, making and moving files and folders of every kind: bits 4 to 13. */
const MAKE_AND_MOVE = ((1n << 14n) - 1n) ^ ((1n << 4n) - 1n);
/** All that a rule about a single file may name. */
const OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE;

export interface Confinement {
  /** Folders and files that may be read. */
  readable: readonly string[];
  /** Those that may also be executed, or loaded as a library. */
  executable: readonly string[];
  /** Those that may be read and changed. */
  writable: readonly string[];
}

/** A system call of up to five arguments; a Buffer is passed as its address. Gives -1 on failure. */
function systemCall(number: number, args: readonly (number | Buffer)[]): number {
  return load({
    library: 'libc',
    funcName: 'syscall',
    retType: DataType.I64,
    paramsType: [DataType.I64, ...args.map((arg) => (typeof arg === 'number' ? DataType.I64 : DataType.U8Array))],
    paramsValue: [number, ...args],
  });
}

/** Confines the calling thread; false where the system cannot (macOS, Linux before 5.19, Landlock switched off). */
export function confine({ readable, executable, writable }: Confinement): boolean {
  if (process.platform !== 'linux') return false;
  open({ library: 'libc', path: '' });
  const abi = systemCall(SYS_CREATE_RULESET, [0, 0, CREATE_RULESET_VERSION]);
  if (abi < ABI_MIN) return false;
  const change = WRITE_FILE | MAKE_AND_MOVE | (abi >= ABI_TRUNCATE ? TRUNCATE : 0n);
  const read = READ_FILE | READ_DIR;
  const attributes = Buffer.alloc(8);
  attributes.writeBigUInt64LE(EXECUTE | read | change);
  const ruleset = systemCall(SYS_CREATE_RULESET, [attributes, attributes.length, 0]);
  if (ruleset < 0) return false;
  for (const file of readable) allow(ruleset, file, read);
  for (const file of executable) allow(ruleset, file, read | EXECUTE);
  for (const file of writable) allow(ruleset, file, read | change);
  // Landlock asks for it of a process without privileges: what it starts must not gain any either.
  load({
    library: 'libc',
    funcName: 'prctl',
    retType: DataType.I32,
    paramsType: [DataType.I32, DataType.I64, DataType.I64, DataType.I64, DataType.I64],
    paramsValue: [PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0],
  });
  const restricted = systemCall(SYS_RESTRICT_SELF, [ruleset, 0]) === 0;
  closeSync(ruleset);
  return restricted;
}

/** Adds a rule; a path that does not exist here is left out. @throws Error when the kernel refuses the rule */
function allow(ruleset: number, file: string, access: bigint): void {
  if (!existsSync(file)) return;
  const fd = openSync(file, constants.O_RDONLY);
  const rule = Buffer.alloc(12);
  rule.writeBigUInt64LE(statSync(file).isDirectory() ? access : access & OF_FILES);
  rule.writeInt32LE(fd, 8);
  const result = systemCall(SYS_ADD_RULE, [ruleset, RULE_PATH_BENEATH, rule, 0]);
  closeSync(fd);
  if (result !== 0) throw new Error(`Landlock refused the rule for ${file}`);
}
