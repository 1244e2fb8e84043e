/** Owns how JSON travels over the bus: commands, events, facts and signals. Sound travels as frames, see frame.ts. */

export const toBytes = (message: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(message))

/** Null for what is no JSON: garbage on the bus reads as nothing, and the schema behind it refuses null. */
export function fromBytes(payload: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(payload))
  } catch {
    // Who sent it is not known here; who expected something says so.
    return null
  }
}
