/** Owns how long anybody waits for a call to end that talks by itself. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Caller } from './callers.ts'

const lookAtTalkEvery = 1_000
/** Ms. Longer than any pause for thought. */
const nobodyTalks = 20_000

export type End = { readonly how: string; readonly at: number }

/**
 * Null: it had to be given up. One that still talks at its deadline has until the latest: an agent that a busy machine keeps from understanding asks
 * again and again.
 */
export async function endOf(caller: Caller, deadline: number, latest: number): Promise<End | null> {
  const late = new AbortController()
  const within = (ms: number): Promise<null> => pause(Math.max(0, ms), null, { signal: late.signal }).catch(() => null)
  let end = await Promise.race([caller.ended, within(deadline - performance.now())])
  while (end === null && performance.now() < latest && isTalking(caller))
    end = await Promise.race([caller.ended, within(lookAtTalkEvery)])
  late.abort()
  if (end) caller.talk.stop()
  return end
}

/** The last of them is the one that lasts. */
const isTalking = ({ talk }: Caller): boolean => (talk.silences().at(-1)?.ms ?? 0) < nobodyTalks
