/** Owns all that the page of a call is made of, asked for together; while the call runs, again and again. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import { ask, Refusal } from './ask.js'
import { useEvery } from './use-loaded.js'

/**
 * @typedef {object} WholeCall
 * @property {import('./answers').Call} call
 * @property {import('./answers').Turn[]} transcript
 * @property {import('./answers').Diagnostics | null} diagnostics null: none are told
 * @property {import('./answers').Peaks | null} peaks null: there is no recording, or not yet
 */

/** Ms. */
const lookEvery = 2_000
/** Of each list of the diagnostics: a call that has more is shown as far as that. */
const mostPages = 20

const isMissing = (/** @type {unknown} */ error) => error instanceof Refusal && error.status === 404

/** What may not be there. @param {string} path */
const askIfThere = (path) => ask(path).catch((error) => (isMissing(error) ? null : Promise.reject(error)))

/**
 * A page after the other.
 * @param {string} address
 * @returns {Promise<import('./answers').Diagnostics | null>}
 */
async function askDiagnostics(address) {
  /** @typedef {import('./answers').Diagnostics} Diagnostics */
  const whole = /** @type {Diagnostics | null} */ (await askIfThere(`${address}/diagnostics`))
  if (!whole) return null
  for (let page = 1; page < mostPages; page++) {
    const { turns, steps, deliveries } = whole
    const next = { fromTurn: turns.next, fromStep: steps.next, fromDelivery: deliveries.next }
    const more = Object.entries(next).flatMap(([name, value]) => (value === null ? [] : [[name, String(value)]]))
    if (more.length === 0) break
    const query = new URLSearchParams({
      fromTurn: '2147483647',
      fromStep: '2147483647',
      fromDelivery: '9007199254740991',
      ...Object.fromEntries(more),
    })
    const part = /** @type {Diagnostics} */ (await ask(`${address}/diagnostics?${query}`))
    for (const name of /** @type {const} */ (['turns', 'steps', 'deliveries'])) {
      const list = /** @type {{ data: unknown[], next: number | null }} */ (whole[name])
      if (list.next === null) continue
      list.data.push(...part[name].data)
      list.next = part[name].next
    }
  }
  return whole
}

/** @param {string} address @returns {Promise<WholeCall>} */
async function askAll(address) {
  const call = /** @type {import('./answers').Call} */ (await ask(address))
  const mayHaveSound = call.status === 'completed' && call.startedAt !== undefined
  const [transcript, diagnostics, peaks] = await Promise.all([
    ask(`${address}/transcript`),
    askDiagnostics(address),
    mayHaveSound ? askIfThere(`${address}/audio/peaks`) : null,
  ])
  return /** @type {WholeCall} */ ({ call, transcript, diagnostics, peaks })
}

/**
 * @param {string} address
 * @returns {{ whole: WholeCall | null, error: Error | null, reload: () => void }}
 */
export function useCall(address) {
  const [state, setState] = useState(
    /** @type {{ whole: WholeCall | null, error: Error | null }} */ ({ whole: null, error: null }),
  )
  const [round, setRound] = useState(0)
  useEffect(() => {
    let isHere = true
    askAll(address).then(
      (whole) => isHere && setState({ whole, error: null }),
      (error) => isHere && setState((before) => ({ ...before, error })),
    )
    return () => void (isHere = false)
  }, [address, round])
  const isOpen =
    state.whole !== null &&
    (state.whole.call.status !== 'completed' || state.whole.call.postProcessingStatus === 'in_progress')
  useEvery(isOpen ? lookEvery : null, () => setRound((before) => before + 1))
  return useMemo(() => ({ ...state, reload: () => setRound((before) => before + 1) }), [state])
}
