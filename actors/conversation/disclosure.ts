/**
 * Owns what the caller of a call is told before the talk begins: the engine's voice says it word for word, in a session of its own that listens to
 * nobody, so that nothing cuts it off. What was played the leg counts. What the caller says and presses meanwhile is kept for the talk. It decides
 * nothing about the call. docs/contract/rest.md "Disclosure".
 */
import { isDeepStrictEqual } from 'node:util'
import type { LineFormats } from '../../model/frame.ts'
import { storableText } from '../../model/json.ts'
import { isKeyEvent, type KeyEvent } from '../../model/leg.ts'
import type { EngineEvent } from '../../model/voice-engine.ts'
import { silenceOf } from '../../media/codecs/silence.ts'
import { commandLeg } from '../node/leg-link.ts'
import type { Conversation } from './conversation.ts'
import { createKeptSpeech } from './kept-speech.ts'
import { maxDetails } from './lost-engine.ts'
import { createPassage, type Passage } from './passage.ts'
import { createPrivateKeys } from './private-keys.ts'
import { lineOf, listenerOf, listens, recordingFrom, startLeg, type Kept } from './start-leg.ts'
import { maxTyped } from './session-backlog.ts'
import type { ConversationDeps, ConversationStart } from './talk-start.ts'
import { createUnbrokenLine, hearLine } from './unbroken-line.ts'
import { createUtterances } from './utterances.ts'

export type DisclosureStart = Pick<ConversationStart, 'config' | 'recording' | 'isPaused' | 'answeredAt'> & {
  readonly text: string
  /** Said right behind it, to its end as well; null: nothing. */
  readonly announcement: string | null
}

const maxKeys = 32
const nothing = (): void => undefined

export function createDisclosure(deps: ConversationDeps, start: DisclosureStart): Conversation {
  const keys = createPrivateKeys(start.isPaused === true)
  const pressed: string[] = []
  const typed: string[] = []
  let saying: Saying | null = null
  /** Nothing more of it is said or counted. */
  let isOver = false

  const press = (event: KeyEvent): void => {
    if (event.type === 'typed') return void (typed.length < maxTyped && typed.push(event.text))
    if (pressed.length >= maxKeys) return
    keys.pressed(event.digit, event.line?.hidden === true)
    pressed.push(event.digit)
  }
  const heardKey = (event: KeyEvent): void => (saying ? saying.press(event) : press(event))
  const end = (): void => {
    if (isOver) return
    isOver = true
    if (saying) saying.tell()
    else deps.post({ type: 'disclosure_played', playedMs: 0, completed: false })
  }
  const fallSilent = async (): Promise<void> => {
    if (isOver) return
    await saying?.cut()
    end()
  }
  const abandon = (): void => {
    isOver = true
    saying?.close()
  }
  return {
    async open() {
      const { hears, speaks } = deps.engine
      const placed = recordingFrom(deps, start)
      const recording = placed && { ...placed, parts: placed.parts ?? ('agent' as const) }
      const formats = { hears: [...hears], speaks: [...speaks] }
      const command = { type: 'start', epoch: deps.epoch, ...formats, recording, ...listenerOf(deps) } as const
      const reply = await startLeg(deps, command, () => isOver)
      if (isOver) return
      if (reply.type === 'started') {
        saying = beginSaying(
          deps,
          { ...start, ...lineOf(reply), press },
          { hears: reply.hears, speaks: reply.speaks },
          end,
        )
        if (reply.waits) void listens(deps, () => isOver)
        return saying.open()
      }
      deps.post({
        type: 'leg_disconnected',
        cause: 'failed',
        details: `the leg did not start: ${JSON.stringify(reply)}`,
      })
    },
    // It is said once more from its beginning, by another one.
    rejoin: () => Promise.resolve(),
    legEvent(event) {
      if (event.type === 'drained' && !isOver) saying?.played(event.lastPlayedSeq)
      if (isKeyEvent(event)) heardKey(event)
    },
    // It is said to its end by whoever begins it.
    isQuiet: () => false,
    settles: () => null,
    written: nothing,
    recordingPaused: keys.paused,
    // The call keeps them for the talk behind.
    whisper: () => undefined,
    turnFound: () => undefined,
    toolResult: nothing,
    leaveMessage: () => Promise.resolve(),
    fallSilent,
    // It is said anew.
    leave() {
      abandon()
      return []
    },
    async stop() {
      await fallSilent()
      abandon()
    },
    abandon,
    earlier: {
      keys,
      press: heardKey,
      take(formats) {
        const frames = saying?.handOver(formats) ?? []
        return {
          frames,
          pressed: pressed.splice(0),
          typed: typed.splice(0),
          results: [],
          nextSeq: saying?.nextSeq() ?? 0,
        }
      },
    },
  }
}

type Saying = ReturnType<typeof beginSaying>

type Begun = DisclosureStart & Kept & { press(event: KeyEvent): void }

/** `done`: all of it has been heard. */
function beginSaying(deps: ConversationDeps, start: Begun, formats: LineFormats, done: () => void) {
  const { bus, callId, epoch, clock, engine, post } = deps
  const utterances = createUtterances(formats.speaks)
  const kept = createKeptSpeech(formats.hears, formats.speaks)
  const silence = silenceOf(formats.hears)
  const texts = start.announcement === null ? [start.text] : [start.text, start.announcement]
  const passages: Passage[] = []
  let played = -1

  const send = (frames: ReturnType<typeof utterances.audio>): void => {
    for (const { payload } of frames) kept.says(payload)
    line.send(frames)
  }
  const take = (event: EngineEvent): void => {
    const now = clock.now()
    if (event.type === 'audio') send(utterances.audio(event.itemId, event.payload, now))
    if (event.type === 'agent_text') utterances.text(event.itemId, event.text)
    if (event.type === 'item_done') send(utterances.finish(event.itemId, now) ?? [])
    settle()
  }
  const lost = (details: string): void =>
    post({ type: 'engine_failed', details: storableText(details, maxDetails), hasSpoken: utterances.nextSeq() > 0 })
  const settle = (): void => {
    const passage = passages.at(-1)
    passage?.heard(utterances.playedUpTo(played))
    if (!passage?.isSaid() || utterances.busy()) return
    passage.close()
    if (!passage.hasSound()) return lost('the engine said nothing of what is to be said first')
    if (passages.length < texts.length) void begin()
    else done()
  }
  const cut = async (): Promise<void> => {
    const reply = await commandLeg(bus, callId, { type: 'flush', epoch })
    if (reply?.type === 'flushed') played = Math.max(played, reply.lastPlayedSeq)
    line.cut()
    passages.at(-1)?.heard(utterances.cut(played).heard)
  }
  const begin = (): Promise<void> => {
    const config = { ...start.config, formats }
    const passage = createPassage({ ...deps, config, text: texts[passages.length] ?? '', take, cut, lost })
    passages.push(passage)
    return passage.open()
  }
  const heardUpTo = (lastPlayedSeq: number): void => {
    played = Math.max(played, lastPlayedSeq)
    line.played(played)
    settle()
  }
  const line = createUnbrokenLine({
    ...deps,
    ...start,
    takeKey: start.press,
    leftOut: nothing,
    take({ payload }) {
      kept.hear(payload)
      passages.at(-1)?.hear(silence)
    },
    caughtUp: heardUpTo,
  })
  const hearing = hearLine(deps, line)
  return {
    open: begin,
    cut,
    press: line.press,
    nextSeq: utterances.nextSeq,
    played: heardUpTo,
    tell(): void {
      for (const passage of passages) passage.close()
      for (const fact of passages.flatMap((passage) => passage.facts(engine.name, start.answeredAt))) post(fact)
      const [disclosure] = passages
      post({
        type: 'disclosure_played',
        playedMs: disclosure?.playedMs() ?? 0,
        completed: disclosure?.isWhole() ?? false,
      })
    },
    /** What the caller said, for a session that hears it in the same format. */
    handOver(wanted: LineFormats): readonly Uint8Array[] {
      hearing.close()
      const frames = kept.take()
      return isDeepStrictEqual(wanted.hears, formats.hears) ? frames : []
    },
    close(): void {
      hearing.close()
      for (const passage of passages) passage.close()
    },
  }
}
