/**
 * Owns the voice engine `cascade`: any three OpenAI-compatible endpoints, for transcription, chat and speech, make one voice. Turns and interruptions
 * are found here, by the voice detector of the embedded engine.
 */
import { randomUUID } from 'node:crypto'
import { Agent } from 'undici'
import type { Clock } from '../../../model/clock.ts'
import type { AudioFormat, LineFormats } from '../../../model/frame.ts'
import type { Log } from '../../../model/log.ts'
import type { UsedUnits } from '../../../model/usage.ts'
import { EngineRefusal, type VoiceEngine } from '../../../model/voice-engine.ts'
import { createVoiceDetectors } from '../../../media/vad/voice-detector.ts'
import { openAttending } from '../hosted/attend.ts'
import { openTalk } from '../hosted/talk.ts'
import type { OpenWire, Wire } from '../hosted/wire.ts'
import { createNotices } from '../notices.ts'
import { createChat } from './chat.ts'
import { createEndpoint, type EndpointAddress } from './endpoint.ts'
import { createEndpointHealth } from './endpoint-health.ts'
import { shortenedMemory } from './memory.ts'
import { createSpeech, speechFormOf, speechRateOf, type SpeechRate } from './speech.ts'
import { createTranscription } from './transcription.ts'
import { createTranscriptionStreams } from './transcription-stream.ts'
import { createWire } from './wire.ts'

export type CascadeEngineDeps = {
  readonly chat: EndpointAddress
  /** `streams` false: whole utterances only, whatever the server has. */
  readonly transcription: EndpointAddress & { readonly streams?: boolean }
  /** `voice`: of workers that name none; null leaves it to the endpoint. `rateHz`: of its `pcm`; null: as its WAV says. */
  readonly speech: EndpointAddress & {
    readonly voice: string | null
    readonly rateHz: SpeechRate | null
  }
  readonly log: Log
  readonly clock: Clock
}

const connectTimeout = 3_000
/** A turn of the caller's is seldom longer: the next one finds the connections open. */
const keepAliveTimeout = 30_000
const hears = { encoding: 'pcm16', rateHz: 16_000 } as const

export async function createCascadeEngine(deps: CascadeEngineDeps): Promise<VoiceEngine> {
  const { log, clock, speech } = deps
  const createDetector = await createVoiceDetectors()
  // What is waited for is told by the endpoints' own limits.
  const agent = new Agent({ connect: { timeout: connectTimeout }, headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout })
  const tellOnce = createNotices(log)
  const endpointOf = (address: EndpointAddress) => createEndpoint({ address, agent, clock })
  const speechEndpoint = endpointOf(speech)
  const chat = createChat({
    endpoint: endpointOf(deps.chat),
    model: deps.chat.model,
    clock,
    tellOnce,
  })
  const transcribe = createTranscription({
    endpoint: endpointOf(deps.transcription),
    model: deps.transcription.model,
    clock,
  })
  const { transcription } = deps
  const openStream =
    transcription.streams === false ? noStream : createTranscriptionStreams({ address: transcription, clock, tellOnce })
  const checkHealth = createEndpointHealth({
    addresses: { chat: deps.chat, transcription: deps.transcription, speech },
    endpointOf,
    clock,
  })
  const rateHz = speechRateOf(speech.rateHz)
  const form = speechFormOf(speech.rateHz)
  const wires = new Set<Wire>()
  const ending = new AbortController()

  const openWire: OpenWire = async (setup, emit) => {
    refuseOtherFormats(setup.formats, rateHz)
    await checkHealth(ending.signal)
    const voice = setup.worker.voiceId ?? speech.voice
    const { model } = speech
    const speak = createSpeech({ endpoint: speechEndpoint, model, voice, rateHz, form, clock, tellOnce })
    // Closed while the endpoints were asked.
    if (ending.signal.aborted) throw new EngineRefusal('the engine is closed', false)
    const session = `cascade-${randomUUID().slice(0, 8)}`
    const used = (name: string, units: UsedUnits): void => emit({ type: 'used', model: name, units })
    const wire = createWire({
      setup,
      async chat(request) {
        const answer = await chat(request)
        if (answer.usage !== null) used(deps.chat.model, answer.usage)
        return answer
      },
      transcribe,
      onTranscribed: (ms) => used(transcription.model, { transcribedMs: ms }),
      openStream,
      speak(text, ...rest) {
        used(model, { characters: text.length })
        return speak(text, ...rest)
      },
      rateHz,
      session,
      emit,
      detector: createDetector(),
      onClosed: () => wires.delete(wire),
    })
    wires.add(wire)
    return wire
  }
  return {
    name: 'cascade',
    hears: [hears],
    speaks: [{ encoding: 'pcm16', rateHz }],
    open: (config, emit) => openTalk({ config, openWire, speaksWhileToolsRun: true, log, clock, emit }),
    attend: (config, emit) =>
      openAttending({ config, openWire, formats: { hears, speaks: { encoding: 'pcm16', rateHz } }, clock, emit }),
    shorten: shortenedMemory,
    async close() {
      ending.abort()
      for (const wire of wires) wire.close()
      await agent.destroy()
    },
  }
}

const noStream = () => ({ begin: () => null, close: () => undefined })

function refuseOtherFormats(formats: LineFormats, rateHz: number): void {
  const isOurs = ({ encoding, rateHz: rate }: AudioFormat, wanted: number) => encoding === 'pcm16' && rate === wanted
  if (isOurs(formats.hears, hears.rateHz) && isOurs(formats.speaks, rateHz)) return
  throw new EngineRefusal(`formats: it hears pcm16 at ${hears.rateHz} Hz and speaks pcm16 at ${rateHz} Hz only`, false)
}
