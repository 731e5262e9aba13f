import { crc32 } from 'node:zlib';
import type { LeafShape } from './shape.ts';

/** The content of a global id: the type of a record, and its id in the service. */
export interface GlobalId {
  readonly type: string;
  /** As the service wrote it: an ID, a String, an Int or an enum as text, any other type as JSON. */
  readonly id: string;
}

const VERSION = 1;
const CHECKSUM = 4;

/**
 * Encodes an id that is unique among all records of the service (Relay, global object identification): base64url of a
 * version byte, `Type:id` and a CRC-32. The checksum distinguishes it from the service's own ids, some of which are
 * base64 too. It is not a signature: a forged id grants nothing that the service's own id does not.
 */
export function encodeGlobalId({ type, id }: GlobalId): string {
  const size = 1 + Buffer.byteLength(type) + 1 + Buffer.byteLength(id);
  const bytes = Buffer.allocUnsafe(size + CHECKSUM);
  bytes[0] = VERSION;
  bytes.write(`${type}:${id}`, 1);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, size)), size);
  return bytes.toString('base64url');
}

/** Returns the JSON of a global id. @param json the service's id, whose shape has `globalIdOf` */
export function globalIdJson({ kind, globalIdOf: type }: LeafShape, json: string): string {
  const id = json[0] === '"' && kind !== 'any' ? (JSON.parse(json) as string) : json;
  return `"${encodeGlobalId({ type: type!, id })}"`;
}
