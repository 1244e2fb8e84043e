/** Owns all that the page of a call is made of: what comes first is shown first; while the call runs it is asked for again and again, only what may be new. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import { ask, isPassing, Refusal } from './ask.js'

/**
 * @typedef {import('./answers').Diagnostics} Diagnostics
 * @typedef {import('./answers').Turn} Turn
 */

/**
 * @typedef {object} WholeCall
 * @property {import('./answers').Call} call
 * @property {Turn[]} transcript
 * @property {Diagnostics | null} diagnostics null: none are told
 * @property {import('./answers').Peaks | null} peaks null: there is no recording, or not yet
 * @property {boolean} [isCut] there is more of its course than is shown
 */

/** Ms. */
const lookEvery = 2_000
/** Of each list of the diagnostics: a call that has more is shown as far as that. */
const mostPages = 100
/** Pages between two times that what has come is shown. */
const shownEvery = 10

const lists = /** @type {const} */ (['turns', 'steps', 'deliveries', 'hooks'])
const queries = { turns: 'fromTurn', steps: 'fromStep', deliveries: 'fromDelivery', hooks: 'fromHook' }
/** Where nothing is. */
const beyond = {
  fromTurn: '2147483647',
  fromStep: '2147483647',
  fromDelivery: '9007199254740991',
  fromHook: '2147483647',
}

/** @param {Diagnostics} page @param {typeof lists[number]} name */
const partOf = (page, name) => (name === 'hooks' ? { data: page.hooks, next: page.nextHook } : page[name])
/** @param {Diagnostics} page @param {typeof lists[number]} name @param {{ data: any[], next: number | null }} part @returns {Diagnostics} */
const withPart = (page, name, { data, next }) =>
  name === 'hooks' ? { ...page, hooks: data, nextHook: next } : { ...page, [name]: { data, next } }

/**
 * Of each list the pages that are full, and where the last one begins: it is asked for again, those before are not.
 * @typedef {object} Known
 * @property {Record<typeof lists[number], { full: any[], from: number }>} lists
 * @property {Turn[]} transcript
 * @property {import('./answers').Peaks | null} peaks
 */

/** @returns {Known} */
const nothingKnown = () => ({
  lists: {
    turns: { full: [], from: 0 },
    steps: { full: [], from: 0 },
    deliveries: { full: [], from: 0 },
    hooks: { full: [], from: 0 },
  },
  transcript: [],
  peaks: null,
})

const isMissing = (/** @type {unknown} */ error) => error instanceof Refusal && error.status === 404

/** What may not be there. @param {string} path */
const askIfThere = (path) => ask(path).catch((error) => (isMissing(error) ? null : Promise.reject(error)))

/**
 * The newest page of each list, where there are more the first of them.
 * @param {string} address
 * @param {Known} known
 * @returns {Promise<Diagnostics | null>}
 */
const askDiagnostics = (address, known) => {
  const query = new URLSearchParams(lists.map((name) => [queries[name], String(known.lists[name].from)]))
  return /** @type {Promise<Diagnostics | null>} */ (askIfThere(`${address}/diagnostics?${query}`))
}

/**
 * Puts a page behind what is known of its lists.
 * @param {Diagnostics} page
 * @param {Known} known
 * @param {(name: typeof lists[number]) => boolean} isAsked
 */
function wholeOf(page, known, isAsked) {
  let whole = page
  for (const name of lists) {
    const list = known.lists[name]
    if (!isAsked(name)) continue
    const { data, next } = partOf(page, name)
    const joined = [...list.full, ...data]
    whole = withPart(whole, name, { data: joined, next })
    if (next === null) continue
    list.full = joined
    list.from = next
  }
  return whole
}

/** @param {Diagnostics} page */
const openOf = (page) => lists.filter((name) => partOf(page, name).next !== null)

/**
 * @param {string} address
 * @param {Known} known
 * @param {(whole: WholeCall) => boolean} show false: nobody looks any more
 */
async function look(address, known, show) {
  const { from: fromTurn, full } = known.lists.turns
  const call = /** @type {import('./answers').Call} */ (await ask(address))
  const mayHaveSound = call.status === 'completed' && call.startedAt !== undefined
  const [said, page, peaks] = await Promise.all([
    /** @type {Promise<Turn[]>} */ (ask(`${address}/transcript${fromTurn === 0 ? '' : `?fromTurn=${fromTurn}`}`)),
    askDiagnostics(address, known),
    known.peaks ?? (mayHaveSound ? askIfThere(`${address}/audio/peaks`) : null),
  ])
  known.transcript = [...known.transcript.slice(0, full.length), ...said]
  known.peaks = /** @type {import('./answers').Peaks | null} */ (peaks)
  const { transcript } = known
  let diagnostics = page && wholeOf(page, known, () => true)
  const showNow = () => show({ call, transcript, diagnostics, peaks: known.peaks })
  if (!showNow() || !diagnostics) return
  for (let pages = 1; pages < mostPages; pages++) {
    const open = openOf(diagnostics)
    if (open.length === 0) return
    const query = {
      ...beyond,
      ...Object.fromEntries(open.map((name) => [queries[name], String(known.lists[name].from)])),
    }
    const part = /** @type {Diagnostics} */ (await ask(`${address}/diagnostics?${new URLSearchParams(query)}`))
    const grown = wholeOf(part, known, (name) => open.includes(name))
    for (const name of open) diagnostics = withPart(diagnostics, name, partOf(grown, name))
    const isLast = openOf(diagnostics).length === 0
    if ((isLast || pages % shownEvery === 0) && !showNow()) return
  }
  show({ call, transcript, diagnostics, peaks: known.peaks, isCut: openOf(diagnostics).length > 0 })
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
    const known = nothingKnown()
    let isHere = true
    let isOpen = true
    let isShown = false
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer
    const show = (/** @type {WholeCall} */ whole) => {
      isShown = true
      isOpen = whole.call.status !== 'completed' || whole.call.postProcessingStatus === 'in_progress'
      if (isHere) setState({ whole, error: null })
      return isHere
    }
    const again = () => {
      if (isHere && isOpen) timer = setTimeout(() => (document.hidden ? again() : lookOnce()), lookEvery)
    }
    // One look after the other: of a call of hours one may take longer than until the next.
    const lookOnce = () =>
      look(address, known, show)
        .catch((error) => {
          isOpen = isPassing(error) || (isOpen && isShown && !isMissing(error))
          if (isHere) setState((before) => ({ ...before, error }))
        })
        .finally(again)
    void lookOnce()
    return () => {
      isHere = false
      clearTimeout(timer)
    }
  }, [address, round])
  return useMemo(() => ({ ...state, reload: () => setRound((before) => before + 1) }), [state])
}
