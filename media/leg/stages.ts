/**
 * Owns what is done to the sound of a leg, as two lists:
 *
 *   up    wire → receiver (jitter buffer, key presses) → `upStages` → up-line (frames of 20 ms in real time) → bus
 *   down  bus → pacer (queue, keys, hold: one piece per tick) → `downStages` → outgoing stream (packets, numbering) → wire
 *
 * A new stage is one line in its list. One that works on samples stands in `onSamples`: where there is none, and the engine hears and speaks
 * the law of the wire, G.711 goes through untouched and nothing is decoded. The lists are made anew when the codec or the actor changes.
 */
import type { AudioFormat } from '../../model/frame.ts'
import { supervisorSound } from '../../model/supervision.ts'
import type { NegotiatedAudio } from '../../model/rtp-transport.ts'
import { createDecoder } from '../codecs/decoder.ts'
import { createEncoder, type Encoder } from '../codecs/encoder.ts'
import { readerOf, writerOf } from '../codecs/frame-bytes.ts'
import type { OpusLibrary } from '../codecs/opus.ts'
import type { Recording } from '../recording/recording.ts'
import type { Listening } from './listening.ts'
import type { StandIn } from './stand-in.ts'
import { comfort } from './stages/comfort.ts'
import { conceal, concealUntouched } from './stages/conceal.ts'
import { decode } from './stages/decode.ts'
import { encode } from './stages/encode.ts'
import { listen } from './stages/listen.ts'
import { keys } from './stages/keys.ts'
import { resample } from './stages/resample.ts'
import { silence } from './stages/silence.ts'
import { standIn } from './stages/stand-in.ts'
import type { Stage, Stages } from './stages/stage.ts'
import { tap } from './stages/tap.ts'

type Stream = {
  readonly audio: NegotiatedAudio
  readonly opus: OpusLibrary
  /** Null: nobody records. */
  readonly recording: Pick<Recording, 'caller' | 'agent'> | null
  /** Absent: nobody can listen, or speak in the agent's place. */
  readonly supervisors?: Supervisors
}

export type Supervisors = { readonly listening: Listening; readonly standIn: StandIn }

type Up = Stream & {
  readonly hears: AudioFormat
  /** Keys are listened for in the sound. */
  readonly keyHeard?: ((digit: string) => void) | null
}

/** What the caller says, from payloads and losses in order to bytes in the format `hears`. */
export function upStages({ audio, opus, recording, hears, keyHeard = null, supervisors }: Up): Stages {
  const codec = createDecoder(audio, hears, opus)
  const law = hears.encoding === audio.codec ? hears.encoding : null
  const onSamples = listed([
    recording && tap((samples, { timestamp, at }) => recording.caller(samples, timestamp, at, codec.rateHz)),
    keyHeard && keys(codec.rateHz, keyHeard),
  ])
  const mayPass = law !== null && onSamples.length === 0
  const isPassed = mayPass && !supervisors?.listening.isOn()
  const heard = mayBeSupervised(audio, supervisors) && heardBy(supervisors.listening, 'caller', codec.rateHz)
  return {
    list: listed([
      isPassed ? null : decode(codec.decode),
      isPassed ? concealUntouched(law) : conceal(codec, audio.clockRateHz),
      ...onSamples,
      heard || null,
      resample(codec.rateHz, hears.rateHz),
      encode({ write: writerOf(hears), isUntouched: law !== null }),
    ]),
    close: codec.close,
  }
}

type Down = Stream & {
  readonly speaks: AudioFormat
  /** Some sound waits for the rest of its packet. */
  readonly isWaiting: () => boolean
  /** Nobody is there who could speak. */
  readonly isAlone?: () => boolean
}

export type DownStages = Stages & Pick<Encoder, 'expectLoss'>

/** What the agent says, from frames in the format `speaks` and pauses to payloads of the codec. */
export function downStages({ audio, opus, recording, speaks, isWaiting, isAlone, supervisors }: Down): DownStages {
  const codec = createEncoder(audio, speaks, opus)
  const isUntouched = speaks.encoding === audio.codec
  const onSamples = listed([recording && tap((samples, { at }) => recording.agent(samples, at, speaks.rateHz))])
  const isPassed = isUntouched && onSamples.length === 0 && !isSupervised(supervisors)
  const { rateHz } = speaks
  const isLed = mayBeSupervised(audio, supervisors)
  const spoken = isLed && standIn(supervisors.standIn, supervisorSound.rateHz, rateHz)
  const heard = isLed && heardBy(supervisors.listening, 'agent', rateHz)
  return {
    list: listed([
      isPassed ? null : decode(readerOf(speaks)),
      spoken || null,
      ...onSamples,
      heard || null,
      isAlone && audio.silence === 'sparse' ? comfort(speaks, isAlone) : null,
      silence({ audio, speaks, rateHz: codec.rateHz, isWaiting }),
      resample(speaks.rateHz, codec.rateHz),
      encode({ write: codec.encode, isUntouched, rest: codec.rest }),
    ]),
    expectLoss: codec.expectLoss,
    close: codec.close,
  }
}

/** Its stages are made anew when somebody begins or ends to listen or speak: of G.711 nothing is lost by it, and hardly a call is ever supervised. */
export const isMadeAnew = ({ codec }: NegotiatedAudio): boolean => codec === 'pcmu' || codec === 'pcma'

const mayBeSupervised = (audio: NegotiatedAudio, supervisors: Supervisors | undefined): supervisors is Supervisors =>
  supervisors !== undefined && (!isMadeAnew(audio) || isSupervised(supervisors))

export const isSupervised = (supervisors: Supervisors | undefined): boolean =>
  supervisors !== undefined && (supervisors.listening.isOn() || supervisors.standIn.isOn())

const heardBy = (listening: Listening, whose: 'caller' | 'agent', fromHz: number): Stage =>
  listen({ fromHz, toHz: supervisorSound.rateHz }, { isOn: listening.isOn, take: listening[whose] })

const listed = (stages: readonly (Stage | null)[]): readonly Stage[] => stages.filter((stage) => stage !== null)
