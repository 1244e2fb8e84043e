/**
 * Owns what form the sound of a speech endpoint has: bare samples, or a WAV file around them, at whatever rate; out come whole 16-bit samples of one
 * channel at the rate of the line. Anything else would be heard as noise and is refused.
 */
import { bytesOf, samplesOf } from '../../../model/frame.ts'
import { createResampler } from '../../../media/pcm/resample.ts'
import { EndpointError } from './endpoint.ts'

export type SoundReader = {
  /** Takes a piece of the answer, cut anywhere. Throws EndpointError for what is no such sound. */
  push(chunk: Uint8Array): Uint8Array
}

type Shape = {
  readonly rateHz: number
  readonly channels: 1 | 2
  /** Where the samples begin, and how many bytes of them there are. */
  readonly from: number
  readonly bytes: number
}

/** A WAV file may have other chunks before its sound. */
const maxHead = 16 * 1024
/** Enough to tell what it is. */
const minHead = 12

export function createSoundReader(contentType: string, rateHz: number): SoundReader {
  let head = Buffer.alloc(0)
  let sound: ReturnType<typeof createConversion> | null = null

  refuseOther(contentType)
  return {
    push(chunk) {
      if (sound !== null) return sound(chunk)
      head = Buffer.concat([head, chunk])
      const shape = shapeOf(head, contentType, rateHz)
      if (shape === null) return new Uint8Array(0)
      sound = createConversion(shape, rateHz)
      return sound(head.subarray(shape.from))
    },
  }
}

function refuseOther(contentType: string): void {
  if (/^(?:$|application\/octet-stream|audio\/(?:x-)?(?:pcm|raw|s16le|wav|wave|vnd\.wave))/.test(contentType)) return
  const plain = contentType.split(';')[0]?.replace(/[^\w/+.-]/g, '') ?? ''
  throw new EndpointError(`it answered ${plain.slice(0, 60)}, not pcm`, { status: 200 })
}

/** Null: more of it must come first. */
function shapeOf(head: Buffer, contentType: string, rateHz: number): Shape | null {
  if (head.length < minHead) return null
  const magic = head.toString('latin1', 0, 4)
  if (magic === 'RIFF') return wavShapeOf(head)
  if (contentType.includes('wav')) throw new EndpointError('it answered a WAV file that is none', { status: 200 })
  if (['OggS', 'fLaC'].includes(magic) || magic.startsWith('ID3'))
    throw new EndpointError('it answered a compressed file, not pcm', { status: 200 })
  const declared = Number(/;\s*rate=(\d+)/.exec(contentType)?.[1] ?? rateHz)
  const channels = /;\s*channels=2\b/.test(contentType) ? 2 : 1
  return checked({ rateHz: declared, channels, from: 0, bytes: Infinity })
}

/** Of a file whose end has not come; who streams cannot know the size. */
function wavShapeOf(head: Buffer): Shape | null {
  let format: Buffer | null = null
  for (let at = 12; at + 8 <= head.length;) {
    const name = head.toString('latin1', at, at + 4)
    const size = head.readUInt32LE(at + 4)
    if (name === 'fmt ' && at + 24 <= head.length) format = head.subarray(at + 8, at + 24)
    if (name === 'data') return checked({ ...formatOf(format), from: at + 8, bytes: sizeOf(size) })
    at += 8 + size + (size % 2)
  }
  if (head.length > maxHead) throw new EndpointError('it answered a WAV file without sound', { status: 200 })
  return null
}

const sizeOf = (size: number): number => (size === 0 || size >= 0x7fff_0000 ? Infinity : size)

/** RFC 2361: 1 is PCM; an extensible format with 16 bits is, as a rule, the same. */
function formatOf(format: Buffer | null): Pick<Shape, 'rateHz' | 'channels'> {
  const channels = format?.readUInt16LE(2)
  const isPcm = format !== null && [1, 0xfffe].includes(format.readUInt16LE(0)) && format.readUInt16LE(14) === 16
  if (!isPcm || (channels !== 1 && channels !== 2))
    throw new EndpointError('it answered a WAV file that is not 16-bit PCM of one or two channels', { status: 200 })
  return { rateHz: format.readUInt32LE(4), channels }
}

/** Rates beyond these do not occur. */
function checked(shape: Shape): Shape {
  if (shape.rateHz >= 8_000 && shape.rateHz <= 96_000 && shape.rateHz % 25 === 0) return shape
  throw new EndpointError(`it speaks at ${shape.rateHz} Hz`, { status: 200 })
}

/** Two bytes are one sample, wherever the answer was cut. */
function createConversion({ rateHz, channels, bytes }: Shape, lineHz: number): (chunk: Uint8Array) => Uint8Array {
  const resample = createResampler(rateHz, lineHz)
  const frameBytes = 2 * channels
  let odd = Buffer.alloc(0)
  let left = bytes
  return (chunk) => {
    const ours = chunk.subarray(0, Math.min(chunk.length, left))
    left -= ours.length
    const all = Buffer.concat([odd, ours])
    const whole = all.length - (all.length % frameBytes)
    odd = all.subarray(whole)
    const sound = channels === 2 ? mixed(all.subarray(0, whole)) : all.subarray(0, whole)
    return resample === null || sound.length === 0 ? sound : bytesOf(resample.convert(samplesOf(sound))).slice()
  }
}

function mixed(stereo: Buffer): Buffer {
  const mono = Buffer.alloc(stereo.length / 2)
  for (let at = 0; at < mono.length; at += 2)
    mono.writeInt16LE((stereo.readInt16LE(2 * at) + stereo.readInt16LE(2 * at + 2)) >> 1, at)
  return mono
}
