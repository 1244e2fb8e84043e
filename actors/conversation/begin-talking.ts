/** Owns how the parts of a talk are put together once its leg has started: what each of them tells the others. */
import { isDeepStrictEqual } from 'node:util'
import type { Frame, LineFormats } from '../../model/frame.ts'
import type { KeyEvent } from '../../model/leg.ts'
import type { EngineConfig } from '../../model/voice-engine.ts'
import { silenceOf } from '../../media/codecs/silence.ts'
import { createAgentVoice } from './agent-voice.ts'
import type { Earlier } from './earlier.ts'
import { knownOf } from './known-of.ts'
import type { GoingOn } from './left-words.ts'
import { tellLost } from './lost-engine.ts'
import { createMemoryBound } from './memory-bound.ts'
import type { PrivateKeys } from './private-keys.ts'
import { createReactions } from './reactions.ts'
import { createSessionKeeper, type SessionKeeper } from './session-keeper.ts'
import { createSettledSpeech } from './settled-speech.ts'
import type { Kept } from './start-leg.ts'
import type { ConversationDeps, ConversationStart } from './talk-start.ts'
import type { Talking } from './talking.ts'
import { createToldWords } from './told-words.ts'
import { createTurnLog } from './turn-log.ts'
import { createTurnTiming } from './turn-timing.ts'
import { createUnbrokenLine, hearLine } from './unbroken-line.ts'
import { createMessageLeaving } from './voicemail/message-leaving.ts'
import { watchForVoicemail } from './voicemail/watch-for-voicemail.ts'

type Begun = ConversationStart & {
  readonly keys: PrivateKeys
  readonly firstSeq: number
  readonly goingOn: GoingOn | null
  takeKey(event: KeyEvent): void
} & Kept

export function beginTalking(deps: ConversationDeps, start: Begun, formats: LineFormats): Talking {
  const { clock, engine, log, post } = deps
  const memories = createMemoryBound(engine, log)
  const { answeredAt, firstSeq, goingOn } = start
  const memory = memories.kept((goingOn ?? start).config.memory) ?? null
  const config: EngineConfig = { ...start.config, ...goingOn?.config, formats, memory }
  const turnLog = createTurnLog({
    ...deps,
    turns: start.turns,
    memory,
    history: start.config.history,
    tellsInterim: config.worker.transcriptEvents === 'interim',
    source: engine.name,
  })
  const timing = createTurnTiming(deps)
  const line = createUnbrokenLine({
    ...deps,
    ...start,
    take: (frame) => hear(frame),
    leftOut: (frames) => session.missed(frames),
    takeKey(event) {
      // Its turn may come with it.
      if (event.line) settled.pressed(event.line.seq, event)
      start.takeKey(event)
    },
    caughtUp(lastPlayedSeq) {
      words.again()
      reactions.played(lastPlayedSeq)
    },
  })
  const words = createToldWords({ ...deps, answeredAt, memory: turnLog.memory })
  const said = { answeredAt, turnLog, timing, line, words }
  const voice = createAgentVoice({ ...deps, ...said, speaks: formats.speaks, firstSeq })
  const hasSpoken = (): boolean => voice.hasSpoken() || config.history.some(({ role }) => role === 'agent')
  let isSilenced = false
  const isQuiet = (): boolean => reactions.isQuiet() && !turnLog.awaitsText() && !leaving.isUnderWay()
  const session: SessionKeeper = createSessionKeeper({
    // Masked before it is measured.
    engine: memories.boundedIn(start.keys.keptBy(engine)),
    isReplaceable: deps.isReplaceable === true,
    clock,
    log,
    ...(deps.telemetry && { telemetry: deps.telemetry }),
    config,
    known: () => knownOf(turnLog, voice, reactions),
    isQuiet,
    take(event) {
      if (isSilenced) return reactions.lastWords(event)
      if (!leaving.admits(event)) return
      voicemailWatch?.engineEvent(event)
      if (event.type === 'finished') words.ends(event.nextAction)
      reactions.engineEvent(event)
      session.quiet()
    },
    opened() {
      reactions.reset()
      // Another session knows nothing of the answering machine.
      if (leaving.isUnderWay()) reactions.engineEvent({ type: 'finished', nextAction: null })
    },
    lost: (details) => void tellLost({ ...deps, voice, turnLog, hasSpoken: hasSpoken() }, details),
  })
  const leaving = createMessageLeaving({
    hears: formats.hears,
    voice,
    session,
    begun: () => reactions.goOn(),
    done: () => post({ type: 'agent_finished', nextAction: null }),
  })
  const voicemailWatch = watchForVoicemail({ ...deps, ...config, answeredAt, hears: formats.hears, session, leaving })
  const reactions = createReactions({ ...deps, ...said, voice, session })
  const settled = createSettledSpeech({
    ...deps,
    ...start,
    heardUntil: () => session.since() + session.heard(),
    isOpen: () => !session.isThere() || reactions.callerSpeaks() || turnLog.awaitsText(),
  })
  const silence = silenceOf(formats.hears)
  const hear = ({ payload, seq }: Frame): void => {
    if (leaving.hear(payload)) return session.hear(silence)
    session.hear(payload)
    voicemailWatch?.hear(payload)
    settled.heard(seq)
  }
  const hearing = hearLine(deps, line)
  if (goingOn) voice.adopt(goingOn.adopted, firstSeq, clock.now())
  if (goingOn?.ends) reactions.engineEvent({ type: 'finished', ...goingOn.ends })
  const fallDeaf = (): void => {
    isSilenced = true
    hearing.close()
  }
  const fallSilent = async (): Promise<void> => {
    fallDeaf()
    if (voice.speaking()) await voice.cut()
  }
  const leave = (): KeyEvent[] => {
    fallDeaf()
    words.again()
    return settled.untold()
  }
  const hearEarlier = (frames: readonly Uint8Array[]): void => {
    session.hearEarlier(frames)
    for (const frame of frames) voicemailWatch?.hear(frame)
  }
  const handOver: Earlier['take'] = (wanted) => {
    hearing.close()
    const { frames, ...left } = session.leave()
    const heard = isDeepStrictEqual(wanted.hears, formats.hears) ? frames : []
    return { ...left, frames: heard, nextSeq: voice.nextSeq() }
  }
  const ways = { ...reactions, ...settled, isQuiet, fallSilent, leave, leaveMessage: leaving.begin, handOver }
  return { session, formats, turnLog, timing, hearing, line, hearEarlier, ...ways }
}
