// @ts-check
/** Owns who listens to a call: listeners by the event's name, and the state of it all for whoever looks instead. */

/** @import { CallEvents, CallState } from './types/parley-client.d.ts' */

const maxLines = 500

/** @type {CallState} */
const first = {
  status: 'connecting',
  reason: null,
  progress: null,
  callId: null,
  agent: null,
  microphone: 'closed',
  isMuted: false,
  quality: null,
  error: null,
  connectedAt: null,
  endedAt: null,
  transcript: [],
}

export function createEvents() {
  /** @type {Map<string, Set<(event: any) => void>>} */
  const listeners = new Map()
  let state = first

  /** One that throws is the page's fault: it shows on the page's console, and the call goes on. @template {keyof CallEvents} Name @param {Name} name @param {CallEvents[Name]} event */
  function emit(name, event) {
    for (const listener of Array.from(listeners.get(name) ?? []))
      try {
        listener(event)
      } catch (error) {
        reportError(error)
      }
  }

  /** @param {Partial<CallState>} changes */
  function change(changes) {
    const names = /** @type {(keyof CallState)[]} */ (Object.keys(changes))
    if (names.every((name) => state[name] === changes[name])) return
    state = { ...state, ...changes }
    emit('change', state)
  }

  return {
    emit,
    change,
    state: () => state,
    /** @template {keyof CallEvents} Name @param {Name} name @param {(event: CallEvents[Name]) => void} listener */
    on(name, listener) {
      const known = listeners.get(name) ?? new Set()
      // The same function may be given twice, and each is taken away by itself.
      const own = (/** @type {CallEvents[Name]} */ event) => listener(event)
      listeners.set(name, known.add(own))
      return () => void known.delete(own)
    },
  }
}

/**
 * The lines with this one in its place: that of the same turn is replaced, and turns stand in their order.
 * @param {CallState['transcript']} lines @param {CallEvents['transcript']} line @returns {CallState['transcript']}
 */
export function withLine(lines, line) {
  const isSame = (/** @type {CallEvents['transcript']} */ { role, turnIndex }) =>
    role === line.role && turnIndex === line.turnIndex
  const at = lines.findLastIndex(isSame)
  if (at >= 0) return lines.with(at, line)
  const before = lines.findLastIndex(({ turnIndex }) => turnIndex <= line.turnIndex)
  return lines.toSpliced(before + 1, 0, line).slice(-maxLines)
}
