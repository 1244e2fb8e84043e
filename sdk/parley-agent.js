// @ts-check
/**
 * Owns what the agent does, told from what reaches the page: its sound, and the words of both. It speaks while it is heard (pauses between sentences
 * included), thinks from the end of what you said until it is heard, and listens otherwise.
 */
import { audibleLevel } from './parley-sound.js'

/** @import { AgentState, Level, TranscriptLine } from './types/parley-client.d.ts' */

/** Longer than the pause between two sentences. */
const pauseWithin = 700
/** What you said is at an end. */
const breathWithin = 400
/** Whoever says nothing for so long was not asked anything. */
const thinksWithin = 15_000

/** @param {{ now: () => number, changed: (state: AgentState) => void }} deps `now`: ms, of a clock that never goes back. */
export function createAgentState({ now, changed }) {
  /** @type {AgentState} */
  let state = null
  let heardAt = -Infinity
  let saidAt = -Infinity
  /** Since when an answer is due. @type {number | null} */
  let dueSince = null

  /** @returns {AgentState} */
  function stateOf() {
    if (now() - heardAt < pauseWithin) return 'speaking'
    const isDue = dueSince !== null && now() - dueSince < thinksWithin
    return isDue && now() - saidAt >= breathWithin ? 'thinking' : 'listening'
  }

  function settle() {
    const next = stateOf()
    if (next === state) return
    state = next
    changed(next)
  }

  return {
    /** Twenty times a second while there is a talk. @param {Level} level */
    level({ you, agent }) {
      if (agent > audibleLevel) [heardAt, dueSince] = [now(), null]
      if (you > audibleLevel * 2) saidAt = now()
      settle()
    },
    /** @param {TranscriptLine} line */
    line({ role, text }) {
      if (role === 'user' && text !== '') dueSince = now()
      if (role === 'agent') dueSince = null
      settle()
    },
    interrupted() {
      heardAt = -Infinity
      settle()
    },
    /** There is no talk. */
    rest() {
      if (state !== null) changed((state = null))
      heardAt = -Infinity
      dueSince = null
    },
  }
}
