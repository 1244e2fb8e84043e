/**
 * Owns how a caller of the voice bench talks: waits until the agent has finished and answers, or speaks over it, in turns; and what is measured
 * meanwhile. The times are those of packets at the caller's socket.
 */
import type { Random } from '../fake/random.ts'
import type { VoicePhone } from './voice-phone.ts'
import type { Utterance } from './voice-utterance.ts'

/** Latencies in ms. */
export type TalkFigures = {
  /** From the end of what the caller said to the agent's first loud packet. */
  readonly answers: number[]
  /** From the onset of what the caller said to the agent's last loud packet. */
  readonly silences: number[]
  /** How often no answer came in time, or the agent said nothing that could be answered. */
  unanswered: number
}

export const noFigures = (): TalkFigures => ({ answers: [], silences: [], unanswered: 0 })

type Deps = {
  readonly phone: VoicePhone
  readonly utterances: readonly Utterance[]
  readonly random: Random
  /** What counts at this moment. */
  figures(): TalkFigures
}

/** So long the agent must be silent before a caller takes it to have finished; then callers hesitate, each time otherwise. */
const finishedMs = 500
const hesitationMs = 400
/** So long the agent has spoken before a caller speaks over it, and up to so much longer. */
const beforeInterruption = 700
const patienceMs = 8_000
/** Packets come every 20 ms: an agent that has been loud within this speaks. */
const speaksMs = 45

/** Until the phone is closed. Never rejects. */
export async function talk(deps: Deps): Promise<void> {
  const { phone, utterances, random, figures } = deps
  let count = random.below(utterances.length)
  // Not all callers interrupt at once.
  let interrupts = random.next() < 0.5
  while (!phone.isClosed()) {
    const isOver = interrupts ? await speaksOver(deps) : false
    if (!isOver && !(await hasFinished(deps))) {
      if (!phone.isClosed()) figures().unanswered++
      continue
    }
    const utterance = utterances[count++ % utterances.length] as Utterance
    if (!(await turn(deps, utterance, isOver)) && !phone.isClosed()) figures().unanswered++
    interrupts = !interrupts
  }
}

/** True in the midst of the agent's words; false when they were too few. */
async function speaksOver({ phone: { agent, until }, random }: Deps): Promise<boolean> {
  const begunAt = performance.now()
  const wait = beforeInterruption + random.next() * beforeInterruption
  const speaks = (now: number): boolean => now - (agent.lastLoud() ?? 0) < speaksMs
  const isFinished = (now: number): boolean => now - (agent.lastLoud() ?? now) > finishedMs
  await until((now) => (now - begunAt > wait && speaks(now)) || isFinished(now), patienceMs)
  return speaks(performance.now())
}

function hasFinished({ phone: { agent, until }, random }: Deps): Promise<boolean> {
  const quiet = finishedMs + random.next() * hesitationMs
  return until((now) => now - (agent.lastLoud() ?? now) > quiet, patienceMs)
}

/** False: nothing came back. */
async function turn({ phone, figures }: Deps, utterance: Utterance, isOver: boolean): Promise<boolean> {
  const { agent, say, until } = phone
  const said = await say(utterance)
  if (said === null) return false
  const { onsetAt, endAt } = said
  let from = endAt
  if (isOver) {
    // The packet that was loud when the caller began is among them.
    const since = onsetAt - speaksMs
    await until((now) => agent.silentAfter(since, now) !== null, patienceMs)
    const silentAt = agent.silentAfter(since, performance.now())
    if (silentAt === null) return false
    figures().silences.push(Math.max(0, silentAt - onsetAt))
    // It went on to the end of what it said, and what comes then is no answer that was waited for.
    if (silentAt > endAt) return true
    from = Math.max(endAt, silentAt)
  }
  await until(() => agent.firstLoudAfter(from) !== null, patienceMs)
  const answeredAt = agent.firstLoudAfter(from)
  if (answeredAt === null) return false
  figures().answers.push(answeredAt - endAt)
  return true
}
