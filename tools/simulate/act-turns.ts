/**
 * Owns what a caller does, turn by turn: waits for what the agent says, takes the turn or cuts in, and says the same once more when asked again. Where it
 * waited in vain, it says so, and hangs up.
 */
import { frameMs } from '../../model/frame.ts'
import type { Random } from '../chaos/random.ts'
import type { CallerLeg, SpeechKind } from './caller-leg.ts'
import { fits } from './pattern.ts'
import type { Scenario, Turn } from './scenario.ts'

export type ActDeps = {
  readonly leg: CallerLeg
  readonly scenario: Scenario
  readonly random: Random
  /** What the agent has said so far, utterance by utterance. */
  agentSaid(): readonly string[]
  /** What a turn sounds like. */
  soundOf(turn: Turn): Promise<Int16Array>
  isOver(): boolean
}

export type Stuck = {
  /** Of the scenario, from 1. */
  readonly turn: number
  readonly wanted: string
  /** What the agent had said since the turn before. */
  readonly heard: readonly string[]
  readonly tick: number
}

/** Silent for longer, the agent may have finished, ms. */
const wordGap = 100
/** The call has an end of its own before, ms. */
const longestListening = 10 * 60_000

/** How a caller who was stuck fared; null: all was done. */
export async function actTurns(deps: ActDeps): Promise<Stuck | null> {
  const { leg, scenario, random } = deps
  const { caller } = scenario
  /** Utterances of the agent before it are no answer to what is waited for. */
  let cursor = 0
  let last: { readonly turn: Turn; readonly sound: Int16Array; left: number } | null = null
  let lastEnd = 0

  const newWords = (): readonly string[] => deps.agentSaid().slice(cursor)
  const isHeard = (pattern: string | undefined): boolean =>
    pattern === undefined || newWords().some((text) => fits(pattern, text))
  const hasBegun = (): boolean => (leg.agent().begun ?? -1) >= lastEnd
  const isAskedAgain = (): boolean => {
    const pattern = last && againOf(last.turn)
    return pattern !== undefined && pattern !== null && last!.left > 0 && isHeard(pattern)
  }

  /** The agent's turn is over, and what is waited for was said: by words where they are given, else by its voice. */
  async function agentIsDone(turn: Turn, after: number): Promise<boolean> {
    const { hear } = turn as { hear?: string }
    const isQuiet = (): boolean => leg.agent().silentFor >= after
    const met = (): boolean => isQuiet() && (hear === undefined ? hasBegun() : isHeard(hear) || isAskedAgain())
    for (;;) {
      if (!(await leg.until(met, caller.patience))) return false
      if (hear === undefined || isHeard(hear)) return true
      await sayAgain()
    }
  }

  async function sayAgain(): Promise<void> {
    if (!last) return
    last.left -= 1
    cursor = deps.agentSaid().length
    await speak(last.turn, last.sound)
  }

  /** Who has nothing more to say may still be asked again. */
  async function hearOut(): Promise<void> {
    const isAsked = (): boolean => leg.agent().silentFor >= caller.pause[1] && isAskedAgain()
    const isLeft = (): boolean => leg.agent().silentFor > caller.patience
    while (await leg.until(() => isAsked() || isLeft(), longestListening)) {
      if (!isAskedAgain()) return
      await sayAgain()
    }
  }

  async function speak(turn: Turn, sound: Int16Array): Promise<void> {
    if ('keys' in turn) await leg.press(turn.keys)
    else await leg.speak(kindOf(turn), textOf(turn), sound)
    lastEnd = leg.now()
  }

  function isItsTime(turn: Exclude<Turn, { silence: number }>, pause: number): Promise<boolean> {
    const since = (): number => (leg.now() - lastEnd) * frameMs
    const agent = leg.agent
    const { after = pause } = turn
    if (isOverlap(turn)) {
      const isTalking = (): boolean => agent().silentFor < wordGap && agent().speakingFor >= after
      return leg.until(() => isTalking() && since() >= after, caller.patience)
    }
    if ('while' in turn) return leg.until(() => hasBegun() && agent().silentFor >= after, caller.patience)
    if ('unasked' in turn) return leg.until(() => since() >= after, caller.patience)
    return agentIsDone(turn, after)
  }

  async function act(turn: Turn, sound: Int16Array): Promise<boolean> {
    const pause = pauseOf(caller.pause, random)
    if ('silence' in turn) {
      if (turn.hear !== undefined && !(await agentIsDone(turn, pause))) return false
      cursor = deps.agentSaid().length
      await leg.until(() => false, turn.silence)
      return true
    }
    if (!(await isItsTime(turn, pause))) return false
    if ('hangUp' in turn) return true
    if (!isOverlap(turn)) cursor = deps.agentSaid().length
    await speak(turn, sound)
    if ('interrupt' in turn) cursor = deps.agentSaid().length
    if (againOf(turn) !== undefined) last = { turn, sound, left: caller.repeats }
    return true
  }

  for (const [place, turn] of scenario.turns.entries()) {
    const sound = await deps.soundOf(turn)
    if (await act(turn, sound)) continue
    return { turn: place + 1, wanted: wishOf(turn, deps.isOver()), heard: newWords(), tick: leg.now() }
  }
  if (!scenario.turns.some((turn) => 'hangUp' in turn)) await hearOut()
  return null
}

const isOverlap = (turn: Turn): boolean =>
  'interrupt' in turn || 'backchannel' in turn || ('while' in turn && turn.while === 'speaking')

const againOf = (turn: Turn): string | undefined => {
  if ('again' in turn && turn.again !== undefined) return turn.again
  return 'say' in turn || 'keys' in turn ? turn.hear : undefined
}

export function kindOf(turn: Turn): SpeechKind {
  if ('interrupt' in turn) return 'interrupt'
  if ('backchannel' in turn) return 'backchannel'
  if ('cough' in turn) return 'cough'
  return 'aside' in turn ? 'aside' : 'say'
}

export function textOf(turn: Turn): string {
  if ('say' in turn) return turn.say
  if ('interrupt' in turn) return turn.interrupt
  if ('backchannel' in turn) return turn.backchannel
  if ('aside' in turn) return turn.aside
  return 'keys' in turn ? turn.keys : (Object.keys(turn)[0] ?? '')
}

function wishOf(turn: Turn, isOver: boolean): string {
  const wanted =
    'hear' in turn && turn.hear !== undefined
      ? `“${turn.hear}”`
      : isOverlap(turn)
        ? 'the agent to speak'
        : 'the agent to finish speaking'
  return isOver ? `${wanted}, and the call was over` : wanted
}

const pauseOf = ([from, to]: readonly [number, number], random: Random): number => from + random.below(to - from + 1)
