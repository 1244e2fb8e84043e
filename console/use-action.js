/** Owns something that is done when a button is pressed: under way, failed with why, or done. */
import { useCallback, useState } from 'preact/hooks'

/**
 * @typedef {object} Action
 * @property {boolean} isRunning
 * @property {Error | null} error
 * @property {string | null} done what to say when it went well
 * @property {(act: () => Promise<unknown>, done?: string) => void} run
 */

/** @returns {Action} */
export function useAction() {
  const [state, setState] = useState({
    isRunning: false,
    error: /** @type {Error | null} */ (null),
    done: /** @type {string | null} */ (null),
  })
  const run = useCallback((/** @type {() => Promise<unknown>} */ act, /** @type {string} */ done = '') => {
    setState({ isRunning: true, error: null, done: null })
    act().then(
      () => setState({ isRunning: false, error: null, done: done === '' ? null : done }),
      (error) => setState({ isRunning: false, error, done: null }),
    )
  }, [])
  return { ...state, run }
}
