/** Owns what can be read of an Opus packet without decoding it. Pure. RFC 6716 §3.1, §4.2.4. */

/** Configurations of CELT alone; those below carry SILK, with or without CELT above it. */
const firstOfCelt = 16
/** SILK frames of 20 ms in a frame of these configurations, by the last two bits. */
const silkFrames = [1, 1, 2, 3] as const
const firstOfHybrid = 12

/** Whether the packet repeats the end of the one before it (LBRR). Packets of several frames are believed to. */
export function repeatsFormer(packet: Uint8Array): boolean {
  const [toc = 0, first = 0] = packet
  const configuration = toc >> 3
  if (packet.length < 2 || configuration >= firstOfCelt) return false
  if ((toc & 3) > 1) return true
  const frames = configuration >= firstOfHybrid ? 1 : (silkFrames[configuration & 3] ?? 1)
  // A bit of voice activity for each frame, then the flag; both are coded evenly, so they stand in clear.
  return ((first >> (7 - frames)) & 1) === 1
}
