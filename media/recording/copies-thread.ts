/** Owns the thread that makes the copies of a recording: the compressed one and the outline of its waveform. Started by recording-copies.ts. */
import {
  closeSync,
  fsyncSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { randomInt } from 'node:crypto'
import { setPriority } from 'node:os'
import process from 'node:process'
import { parentPort } from 'node:worker_threads'
import { peaksBytesOf } from '../../model/recording-peaks.ts'
import type { CopiesReply, CopiesRequest } from './recording-copies.ts'
import { createOpusWasm, type OpusWasm } from '../codecs/opus-wasm.ts'
import { createOggOpusWriter } from './ogg-opus.ts'
import { createPeakMeter } from './peaks.ts'
import { wavHeaderBytes, wavSoundOf } from './wav.ts'

/** Everything that a call waits for goes first. */
const niceness = 15
/** Whole samples of any shape. */
const pieceBytes = 64 << 10

function makeCopies(library: OpusWasm, { wav, opus, peaks }: CopiesRequest): void {
  const source = openSync(wav, 'r')
  try {
    const header = new Uint8Array(wavHeaderBytes)
    readSync(source, header, 0, header.length, 0)
    const sound = wavSoundOf(header, statSync(wav).size)
    if (sound === null) throw new Error('there is no sound in the recording')
    const meter = createPeakMeter(sound.rateHz, sound.channels)
    // A copy that is there is whole: who reads it never finds the half of one.
    inPlace(opus, (target) => {
      const writer = createOggOpusWriter(
        sound.channels,
        randomInt(2 ** 32),
        (page) => writeFully(target, page),
        library,
      )
      eachPiece(source, sound.dataBytes, (samples) => {
        meter.add(samples)
        writer.add(samples)
      })
      writer.end()
    })
    inPlace(peaks, (target) => writeFileSync(target, peaksBytesOf(sound.channels, sound.ms, meter.values())))
  } finally {
    closeSync(source)
  }
}

function eachPiece(source: number, dataBytes: number, take: (samples: Int16Array) => void): void {
  const piece = new Uint8Array(pieceBytes)
  for (let at = 0; at < dataBytes; at += pieceBytes) {
    const wanted = Math.min(pieceBytes, dataBytes - at)
    if (readSync(source, piece, 0, wanted, wavHeaderBytes + at) < wanted)
      throw new Error('a recording became shorter while it was read')
    take(new Int16Array(piece.buffer, 0, wanted / 2))
  }
}

/** A write may be short. */
function writeFully(target: number, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length;) written += writeSync(target, bytes, written)
}

function inPlace(file: string, write: (target: number) => void): void {
  const part = `${file}.part`
  rmSync(part, { force: true })
  const target = openSync(part, 'wx', 0o600)
  try {
    write(target)
    fsyncSync(target)
  } catch (error) {
    rmSync(part, { force: true })
    throw error
  } finally {
    closeSync(target)
  }
  renameSync(part, file)
}

function main(): void {
  const port = parentPort
  if (port === null) throw new Error('runs in a worker thread only')
  // Elsewhere this would be the priority of the process.
  if (process.platform === 'linux') setPriority(niceness)
  const library = createOpusWasm()
  port.on('message', (request: CopiesRequest) => {
    const reply = (message: CopiesReply): void => port.postMessage(message)
    try {
      makeCopies(library, request)
      reply({ failure: null })
    } catch (error) {
      reply({ failure: error instanceof Error ? error.message : String(error) })
    }
  })
}

main()
