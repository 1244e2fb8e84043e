/**
 * Owns a voice engine of a simulated world: it hears marked frames of the caller, answers each utterance with its next line, calls a tool where the plan
 * says so, and ends the talk after the last line. Keys are told a moment after the last of them, what was typed at once, and neither is answered. A session
 * that is opened anew goes on from the history, as a real one does.
 */
import type { Cancel, Clock } from '../../model/clock.ts'
import type { EngineEvent, VoiceEngine } from '../../model/voice-engine.ts'

/** How a talk goes. */
export type Talk = {
  /** Of the caller; the agent has one more, and the last one ends the call. */
  readonly lines: number
  /** Before the answer to this line a tool is called; null: never. */
  readonly toolAt: number | null
  /** The caller hangs up so many ms after the answer, if the talk has not ended by then. */
  readonly patience: number
  /** Ms behind a key, after which no more are waited for: less than an utterance takes to be understood, or more. */
  readonly keyPause: number
}

/** What stands in a transcript of a caller's utterance. */
export const lineWords = 'caller line '

export const toolName = 'look_up'
const frames = 3
const bytesOfFrame = 640
const thinks = 150

export function createSimulatedEngine(deps: {
  readonly clock: Clock
  talkOf(callId: string): Talk
  /** Never the same twice. */
  unique(): number
  /** Of a session, ms. */
  opensIn(): number
}): VoiceEngine {
  const { clock, unique } = deps
  const format = { encoding: 'pcm16', rateHz: 16000 } as const
  return {
    name: 'simulated',
    hears: [format],
    speaks: [format],
    close: () => Promise.resolve(),
    async open({ callId, history, owesReply, tools }, listener) {
      await new Promise<void>((resolve) => void clock.after(deps.opensIn(), resolve))
      const talk = deps.talkOf(callId)
      let isClosed = false
      let answered = history.filter(({ role, text }) => role === 'user' && text.startsWith(lineWords)).length
      let waitsFor: string | null = null
      let heardLast = 0
      let behind = 0
      const emit = (event: EngineEvent): void => {
        if (!isClosed) listener(event)
      }
      const say = (line: number): void => {
        const itemId = `item ${unique()}`
        emit({ type: 'agent_text', itemId, text: `agent line ${line}` })
        emit({ type: 'audio', itemId, payload: new Uint8Array(bytesOfFrame * frames).fill(1) })
        if (line >= talk.lines) emit({ type: 'finished', nextAction: null })
        emit({ type: 'item_done', itemId })
      }
      const reply = (): void => {
        if (talk.toolAt === answered - 1 && tools.length > 0) {
          waitsFor = `${callId} ${unique()}`
          emit({ type: 'tool_call', id: waitsFor, name: tools[0]!.name, arguments: { line: answered } })
          return
        }
        say(answered)
      }
      const soon = (act: () => void): void => void clock.after(thinks, () => !isClosed && act())
      /** Of utterances whose words are on their way: what is told meanwhile would be taken for them. */
      let owed = 0
      let untold: string[] = []
      let pressed: string[] = []
      let cancelKeys: Cancel = () => undefined
      const tellUntold = (): void => {
        if (owed > 0) return
        for (const text of untold.splice(0))
          emit({ type: 'user_text', text, isFinal: true, confidence: 1, from: behind, to: behind })
      }
      const tellKeys = (): void => {
        cancelKeys()
        if (pressed.length > 0) untold.push(`[pressed ${pressed.splice(0).join(' ')}]`)
        tellUntold()
      }
      if (history.length === 0) soon(() => say(0))
      else if (owesReply) soon(reply)
      return {
        hear(payload) {
          behind += 20
          const [mark = 0, isEnd = 0] = payload
          if (mark === 0 || isEnd === 0) return
          const at = behind
          if (mark === heardLast) return
          heardLast = mark
          emit({ type: 'user_speech_started', at: Math.max(0, at - 40) })
          emit({ type: 'user_speech_stopped', at })
          owed++
          soon(() => {
            owed--
            const text = `${lineWords}${mark}`
            emit({ type: 'user_text', text, isFinal: true, confidence: 1, from: Math.max(0, at - 40), to: at })
            tellUntold()
            answered += 1
            reply()
          })
        },
        interrupt: () => undefined,
        played: () => undefined,
        typed(text) {
          untold.push(text)
          tellUntold()
        },
        dtmf(digit) {
          pressed.push(digit)
          cancelKeys()
          cancelKeys = clock.after(talk.keyPause, () => !isClosed && tellKeys())
        },
        say: () => undefined,
        voicemail: null,
        sayLast: () => undefined,
        toolResult(id) {
          if (id !== waitsFor) return
          waitsFor = null
          soon(() => say(answered))
        },
        instruct: () => undefined,
        whisper: () => undefined,
        recall: () => undefined,
        hearOut() {
          owed = 0
          tellKeys()
          return Promise.resolve()
        },
        close() {
          isClosed = true
          cancelKeys()
        },
      }
    },
  }
}
