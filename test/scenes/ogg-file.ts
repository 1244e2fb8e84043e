/** Owns reading an Ogg Opus file as a stranger would: pages by RFC 3533, their checksums, and what RFC 7845 says of an Opus stream in them. */
import { createOpusWasm } from '../../media/codecs/opus-wasm.ts'

type Page = {
  readonly flags: number
  readonly granule: number
  readonly serial: number
  readonly sequence: number
  readonly packets: Buffer[]
}

/** Bit by bit, from the polynomial. */
function checksumOf(page: Buffer): number {
  let rest = 0
  for (const [at, byte] of page.entries()) {
    rest ^= (at >= 22 && at < 26 ? 0 : byte) << 24
    for (let bit = 0; bit < 8; bit++) rest = (rest << 1) ^ (rest < 0 ? 0x04c1_1db7 : 0)
  }
  return rest >>> 0
}

/** Throws for what is no whole Ogg file. No packet may go over the end of a page. */
export function pagesOf(file: Buffer): Page[] {
  const pages: Page[] = []
  for (let at = 0; at < file.length;) {
    if (file.toString('latin1', at, at + 4) !== 'OggS' || file[at + 4] !== 0) throw new Error(`no page at ${at}`)
    const lacing = [...file.subarray(at + 27, at + 27 + file[at + 26]!)]
    const head = 27 + lacing.length
    const page = file.subarray(at, at + head + lacing.reduce((sum, part) => sum + part, 0))
    if (checksumOf(page) !== page.readUInt32LE(22)) throw new Error(`the checksum of page ${pages.length} is wrong`)
    if (lacing.at(-1) === 255) throw new Error('a packet goes on in the next page')
    const packets: Buffer[] = []
    let from = head
    let length = 0
    for (const part of lacing) {
      length += part
      if (part === 255) continue
      packets.push(page.subarray(from, from + length))
      from += length
      length = 0
    }
    const [serial, sequence] = [page.readUInt32LE(14), page.readUInt32LE(18)]
    pages.push({ flags: page[5]!, granule: Number(page.readBigUInt64LE(6)), serial, sequence, packets })
    at += page.length
  }
  return pages
}

/** What a player plays: 16 kHz, all channels side by side, without the beginning and the end that are to be left out. */
export function decodedOf(file: Buffer): { readonly channels: 1 | 2; readonly samples: Int16Array } {
  const [first, second, ...pages] = pagesOf(file)
  const head = first!.packets[0]!
  if (head.toString('latin1', 0, 8) !== 'OpusHead' || head[8] !== 1 || head[18] !== 0) throw new Error('no OpusHead')
  if (second!.packets[0]!.toString('latin1', 0, 8) !== 'OpusTags') throw new Error('no OpusTags')
  const channels = head[9] as 1 | 2
  const preSkip = head.readUInt16LE(10)
  const opus = createOpusWasm()
  const decoder = opus.openDecoder(16_000, channels)
  const parts: Buffer[] = []
  let ticks = 0
  for (const { packets, granule, flags } of pages) {
    for (const packet of packets) {
      const samples = opus.decode(decoder, packet, 960, 0, channels)
      if (samples === null) throw new Error('a packet is none')
      parts.push(Buffer.from(samples.slice().buffer))
      ticks += (samples.length / channels) * 3
    }
    const isLast = (flags & 4) !== 0
    if (isLast ? granule > ticks : granule !== ticks) throw new Error(`a page says ${granule} and holds ${ticks}`)
  }
  const last = pages.at(-1)!
  if ((last.flags & 4) === 0) throw new Error('the stream has no end')
  const all = Buffer.concat(parts)
  const samples = new Int16Array(all.buffer, all.byteOffset, all.length / 2)
  return { channels, samples: samples.slice((preSkip / 3) * channels, Math.round(last.granule / 3) * channels) }
}
