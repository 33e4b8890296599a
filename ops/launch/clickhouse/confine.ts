// Confines the engine's process to its own files by Linux's Landlock, which needs no root and which
// nothing in the process can undo. The reason: in this mode of the engine the scalar function
// file() reads any file that the process can read, for every user, whatever the grants;
// secrets.json and the environment of the API are such files. Takes folders; returns whether this
// thread, and everything that it starts or executes, is confined.
import { closeSync, constants, existsSync, openSync, statSync } from 'node:fs';
import { DataType, load, open } from 'ffi-rs';

const SYS_CREATE_RULESET = 444;
const SYS_ADD_RULE = 445;
const SYS_RESTRICT_SELF = 446;
const PR_SET_NO_NEW_PRIVS = 38;
const RULE_PATH_BENEATH = 1;
const CREATE_RULESET_VERSION = 1;
/** First version that can allow renames and links between folders, which the engine needs. */
const ABI_MIN = 2;
const ABI_TRUNCATE = 3;

const EXECUTE = 1n << 0n;
const WRITE_FILE = 1n << 1n;
const READ_FILE = 1n << 2n;
const READ_DIR = 1n << 3n;
const TRUNCATE = 1n << 14n;
/** Rights to remove, create and move files and folders of every kind: bits 4 to 13. */
const MAKE_AND_MOVE = ((1n << 14n) - 1n) ^ ((1n << 4n) - 1n);
/** All rights that a rule for a single file may name. */
const OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE;

export interface Confinement {
  /** Folders and files that may be read. */
  readable: readonly string[];
  /** Readable paths that may also be executed, or loaded as a library. */
  executable: readonly string[];
  /** Readable paths that may also be changed. */
  writable: readonly string[];
}

/**
 * Makes a system call of up to five arguments; a Buffer is passed as its address. Returns -1 on
 * failure.
 */
function systemCall(number: number, args: readonly (number | Buffer)[]): number {
  return load({
    library: 'libc',
    funcName: 'syscall',
    retType: DataType.I64,
    paramsType: [DataType.I64, ...args.map((arg) => (typeof arg === 'number' ? DataType.I64 : DataType.U8Array))],
    paramsValue: [number, ...args],
  });
}

/**
 * Confines the calling thread. Returns false where the system cannot (macOS, Linux before 5.19,
 * Landlock disabled).
 */
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
  // Landlock requires this of a process without privileges: programs that it starts must not gain
  // any either.
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

/**
 * Adds a rule; skips a path that does not exist here.
 * @throws Error when the kernel rejects the rule
 */
function allow(ruleset: number, file: string, access: bigint): void {
  if (!existsSync(file)) return;
  const fd = openSync(file, constants.O_RDONLY);
  const rule = Buffer.alloc(12);
  rule.writeBigUInt64LE(statSync(file).isDirectory() ? access : access & OF_FILES);
  rule.writeInt32LE(fd, 8);
  const result = systemCall(SYS_ADD_RULE, [ruleset, RULE_PATH_BENEATH, rule, 0]);
  closeSync(fd);
  if (result !== 0) throw new Error(`Landlock rejected the rule for ${file}`);
}
