/** Owns how a page gets what it shows: asked for once, again when it asks for something else, and what was late is dropped. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ask, isPassing } from './ask.js'

/** Ms until what failed for a while is asked for again by itself. */
const againAfter = 5_000

/**
 * @template Value
 * @typedef {object} Loaded
 * @property {Value | null} value
 * @property {Error | null} error
 * @property {boolean} isLoading
 * @property {() => void} reload keeps what is shown until there is something else
 */

/**
 * @template Value
 * @param {string | null} path null: nothing is asked for
 * @param {{ every?: number }} [how] every: ms between two questions while the page is looked at
 * @returns {Loaded<Value>}
 */
export function useLoaded(path, { every } = {}) {
  const [state, setState] = useState(
    /** @type {{ path: string | null, value: Value | null, error: Error | null, isLoading: boolean }} */ ({
      path: null,
      value: null,
      error: null,
      isLoading: true,
    }),
  )
  const [round, setRound] = useState(0)
  useEffect(() => {
    if (path === null) return
    const ending = new AbortController()
    setState((before) =>
      before.path === path ? { ...before, isLoading: true } : { path, value: null, error: null, isLoading: true },
    )
    ask(path, { signal: ending.signal }).then(
      (value) =>
        ending.signal.aborted || setState({ path, value: /** @type {Value} */ (value), error: null, isLoading: false }),
      (error) =>
        ending.signal.aborted || setState((before) => ({ path, value: before.value, error, isLoading: false })),
    )
    return () => ending.abort()
  }, [path, round])
  const isAway = isPassing(state.error)
  useEvery(isAway ? againAfter : (every ?? null), () => setRound((before) => before + 1))
  const reload = useCallback(() => setRound((before) => before + 1), [])
  const isOld = state.path !== path
  return {
    value: isOld ? null : state.value,
    error: isOld ? null : state.error,
    isLoading: isOld || state.isLoading,
    reload,
  }
}

/**
 * Only while somebody looks at the page.
 * @param {number | null} every ms; null: never
 * @param {() => void} action
 */
export function useEvery(every, action) {
  const latest = useRef(action)
  latest.current = action
  useEffect(() => {
    if (every === null) return
    const timer = setInterval(() => document.hidden || latest.current(), every)
    return () => clearInterval(timer)
  }, [every])
}
