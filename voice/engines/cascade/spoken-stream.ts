/** Owns one utterance that is transcribed while it is spoken: its sound goes out as it comes, its text grows, and is final soon after its end or never. */
import type { Clock } from '../../../model/clock.ts'
import { bytesOf } from '../../../model/frame.ts'
import { storableText } from '../../../model/json.ts'
import { createResampler } from '../../../media/pcm/resample.ts'
import type { JsonSocket } from '../hosted/json-socket.ts'
import type { StreamDialect } from './stream-dialect.ts'
import type { Transcript } from './transcription.ts'

export type SpokenStream = {
  /** 16-bit samples at 16 kHz. */
  push(samples: Int16Array): void
  /** All of it has been said. Null: its text does not come from here. Never rejects, and takes a bounded time. */
  end(): Promise<Transcript | null>
}

/** As the server tells of it. */
export type OpenUtterance = SpokenStream & {
  /** Null: not known yet. */
  itemId(): string | null
  name(itemId: string): void
  grow(delta: string): void
  /** Null: no text will come. Idempotent. */
  settle(final: string | null): void
  isOver(): boolean
}

type Deps = {
  readonly clock: Clock
  readonly dialect: StreamDialect
  readonly socket: JsonSocket
  /** What is understood so far, all of it each time. */
  onText(text: string): void
  onLate(): void
}

const hearsHz = 16_000
/** After the end of the utterance; then the whole of it is sent, and the caller waits for that as well. */
const finalWithin = 2_500
const maxText = 4_000

export function createSpokenStream({ clock, dialect, socket, onText, onLate }: Deps): OpenUtterance {
  const resampler = createResampler(hearsHz, dialect.rateHz)
  const { promise, resolve } = Promise.withResolvers<Transcript | null>()
  let id: string | null = null
  let text = ''
  let hasEnded = false
  let over = false
  let cancel = (): void => {}

  const settle = (final: string | null): void => {
    if (over) return
    over = true
    cancel()
    // A server that takes it for over before it is has not heard all of it.
    const isWhole = final !== null && hasEnded
    resolve(isWhole ? { text: storableText(final.trim(), maxText), confidence: null } : null)
  }
  const send = (message: object): void => {
    if (!over && !socket.send(message)) settle(null)
  }
  if (dialect.begins !== null) send(dialect.begins)
  return {
    itemId: () => id,
    name(itemId) {
      id = itemId
    },
    push(samples) {
      const sound = resampler === null ? samples : resampler.convert(samples)
      send({ type: 'input_audio_buffer.append', audio: Buffer.from(bytesOf(sound)).toString('base64') })
    },
    end() {
      send(dialect.ends)
      hasEnded = true
      if (!over)
        cancel = clock.after(finalWithin, () => {
          settle(null)
          onLate()
        })
      return promise
    },
    grow(delta) {
      text = (text + delta).slice(0, maxText)
      if (!over && text.trim() !== '') onText(storableText(text.trim(), maxText))
    },
    settle,
    isOver: () => over,
  }
}
