/**
 * Owns the turns of one talk over three endpoints: what the caller says is transcribed, the chat answers, its sentences are spoken. Who speaks over
 * the agent silences it; when that was no more than noise or a "mhm", the agent goes on with the sentence that was cut off.
 */
import { frameMs, samplesOf } from '../../../model/frame.ts'
import { unclear } from '../../../model/transcript-marks.ts'
import { createCallerActivity } from '../../../media/vad/caller-activity.ts'
import { createOwnEcho } from '../../../media/vad/own-echo.ts'
import type { VoiceDetector } from '../../../media/vad/voice-detector.ts'
import type { Wire, WireTold } from '../hosted/wire.ts'
import { createAgent, type AgentDeps } from './agent.ts'
import { createCallerUtterances, type Utterance } from './caller-utterances.ts'
import { isBackchannel, looksUnfinished } from './caller-words.ts'
import { EndpointError } from './endpoint.ts'
import type { Transcribe, Transcript } from './transcription.ts'
import type { OpenTranscriptionStream } from './transcription-stream.ts'

export type WireDeps = Pick<AgentDeps, 'setup' | 'chat' | 'speak' | 'rateHz' | 'session'> & {
  emit(event: WireTold): void
  readonly detector: VoiceDetector
  readonly transcribe: Transcribe
  readonly openStream: OpenTranscriptionStream
  /** Ms of sound. */
  onTranscribed(ms: number): void
  /** By whomever; once. */
  onClosed(): void
}

/** Who looks unfinished is given so much longer, besides the end-of-turn wait, before the agent answers. */
const unfinishedFrames = 1_000 / frameMs
const frameSamples = 320
const samplesPerMs = frameSamples / frameMs
const maxSaid = 10_000

/** No key or no model, whatever is said. */
const isForGood = ({ status }: EndpointError): boolean => status !== null && [401, 403, 404].includes(status)

export function createWire(deps: WireDeps): Wire {
  const ending = new AbortController()
  /** The agent answers after so many more frames of silence. */
  let waitFrames = 0
  let isFirst = true
  /** What the agent was saying when it was cut off by this caller. */
  let cutOff: string | null = null
  let lastSentence = ''

  const echo = createOwnEcho(deps.rateHz)
  const emit = (event: WireTold): void => {
    if (ending.signal.aborted) return
    if (event.type === 'audio') echo.says(samplesOf(event.payload))
    deps.emit(event)
  }
  const close = (): void => {
    if (ending.signal.aborted) return
    ending.abort()
    agent.close()
    caller.close()
    stream.close()
    deps.onClosed()
  }
  const fail = (where: string, error: unknown): void => {
    const isRetryable = !(error instanceof EndpointError) || error.isPassing
    emit({ type: 'failed', details: `${where}: ${error instanceof Error ? error.message : 'unknown'}`, isRetryable })
    close()
  }
  const stream = deps.openStream(deps.setup.language)
  const transcribe = async (
    samples: Int16Array,
    streamed: Promise<Transcript | null> | null,
  ): Promise<Transcript | null> => {
    try {
      const transcript = (await streamed) ?? (await deps.transcribe(samples, deps.setup.language, ending.signal))
      if (transcript !== null && !ending.signal.aborted) deps.onTranscribed(Math.round(samples.length / samplesPerMs))
      return transcript
    } catch (error) {
      // After the event that it was not understood: no later utterance will be.
      if (error instanceof EndpointError && isForGood(error)) setImmediate(() => fail('transcription', error))
      return null
    }
  }
  const onHeard = ({ transcript, from, to, over }: Utterance): void => {
    const { text, confidence } = transcript ?? { text: unclear, confidence: null }
    emit({ type: 'user_text', text, isFinal: true, confidence, from, to })
    const saying = over ?? cutOff
    if (text !== '' && (saying === null || !isBackchannel(text, saying))) {
      agent.answer(text)
      waitFrames = looksUnfinished(text) ? unfinishedFrames : 0
    }
    if (caller.busy()) return
    agent.goOn()
    agent.next()
  }
  const agent = createAgent({
    ...deps,
    emit,
    at: () => caller.at(),
    maySpeak: () => !deps.setup.attends && !ending.signal.aborted && waitFrames === 0 && !caller.busy(),
    onFailed: fail,
  })
  const caller = createCallerUtterances({
    activity: createCallerActivity(deps.detector, echo),
    transcribe,
    stream: stream.begin,
    onPartial: (text, from, to) => emit({ type: 'user_text', text, isFinal: false, confidence: null, from, to }),
    agentSpeaks: agent.saying,
    onStarted(at) {
      waitFrames = 0
      cutOff = null
      lastSentence = agent.lastSentence()
      emit({ type: 'user_speech_started', at })
      agent.hold()
    },
    onStopped: (at) => emit({ type: 'user_speech_stopped', at }),
    onHeard,
  })
  return {
    hear(payload) {
      if (isFirst) agent.catchUp()
      isFirst = false
      const samples = samplesOf(payload)
      if (samples.length === frameSamples) caller.hear(samples)
      if (waitFrames > 0 && !caller.busy() && --waitFrames === 0) agent.next()
    },
    interrupt(heard) {
      if (ending.signal.aborted) return
      echo.cut()
      if (agent.cut(heard, caller.busy()) && caller.busy()) cutOff = lastSentence
    },
    // The silence behind the last words has ended them.
    lineClosed: () => undefined,
    instruct: agent.instruct,
    recall: agent.recall,
    reply: (hint) => agent.enqueue({ kind: 'reply', hint }),
    say: (text) => agent.enqueue({ kind: 'say', text: text.slice(0, maxSaid) }),
    tell: agent.tell,
    answerTool: agent.answerTool,
    close,
  }
}
