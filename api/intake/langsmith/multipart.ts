// Splits the multipart bodies of LangSmith's clients. Takes the bytes and the content type; returns the
// parts with their names, types and bytes, which share the memory of the body. Bounds: PARTS_MAX
// parts; no part is copied.
import { MalformedBody } from '../../http/body.ts';

/** Maximum parts of one body: clients send at most 100 runs of some parts each. */
const PARTS_MAX = 20_000;
const HEADERS_BYTES_MAX = 4096;
const BOUNDARY = /;\s*boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))/i;
const NAME = /^content-disposition:[^\r\n]*?[;\s]name="([^"\r\n]{1,600})"/im;
const TYPE = /^content-type:[ \t]*([^\r\n]{1,300})/im;

export interface Part {
  name: string;
  type: string;
  data: Buffer;
}

/** @throws MalformedBody */
export function readMultipart(body: Buffer, contentType: string): Part[] {
  const found = BOUNDARY.exec(contentType);
  const boundary = found?.[1] ?? found?.[2];
  if (boundary === undefined) throw new MalformedBody('Content-Type names no boundary');
  const mark = Buffer.from(`--${boundary}`, 'latin1');
  const parts: Part[] = [];
  let at = body.indexOf(mark);
  if (at === -1) {
    if (body.length === 0) return parts;
    throw new MalformedBody('the body does not contain its boundary');
  }
  for (;;) {
    const begin = at + mark.length;
    if (body.toString('latin1', begin, begin + 2) === '--') return parts;
    const next = body.indexOf(mark, begin);
    if (next === -1) throw new MalformedBody('the last part of the body has no end');
    parts.push(readPart(body.subarray(begin, next)));
    if (parts.length > PARTS_MAX) throw new MalformedBody(`the body has more than ${PARTS_MAX} parts`);
    at = next;
  }
}

/** Reads a part between two boundaries: a line break, headers, an empty line, data, a line break. */
function readPart(bytes: Buffer): Part {
  const split = bytes.indexOf('\r\n\r\n');
  if (split === -1 || split > HEADERS_BYTES_MAX) throw new MalformedBody('a part has no headers');
  const head = bytes.toString('latin1', 0, split);
  const name = NAME.exec(head)?.[1];
  if (name === undefined) throw new MalformedBody('a part has no name');
  const end = bytes.toString('latin1', bytes.length - 2) === '\r\n' ? bytes.length - 2 : bytes.length;
  return { name, type: TYPE.exec(head)?.[1]?.trim() ?? '', data: bytes.subarray(split + 4, Math.max(split + 4, end)) };
}
