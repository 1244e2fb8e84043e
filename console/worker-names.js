/** Owns the names of the account's workers, by their id: asked for once for each account. */
import { useEffect, useState } from 'preact/hooks'
import { ask } from './ask.js'
import { useHere } from './session.js'

/** @typedef {import('./answers').Worker} Worker */

/** @type {Map<string, Promise<Worker[]>>} */
const known = new Map()

/** @param {string} api */
function workersOf(api) {
  const asked = known.get(api) ?? ask(`${api}/workers`)
  known.set(api, /** @type {Promise<Worker[]>} */ (asked))
  asked.catch(() => known.delete(api))
  return /** @type {Promise<Worker[]>} */ (asked)
}

/** After one was made, renamed or deleted. @param {string} api */
export const forgetWorkers = (api) => void known.delete(api)

/** @returns {readonly Worker[]} empty until they are known */
export function useWorkers() {
  const { api } = useHere()
  const [workers, setWorkers] = useState(/** @type {readonly Worker[]} */ ([]))
  useEffect(() => {
    let isHere = true
    workersOf(api).then(
      (found) => isHere && setWorkers(found),
      () => {
        // Their ids are shown then.
      },
    )
    return () => void (isHere = false)
  }, [api])
  return workers
}

/** @returns {(id: string) => string} */
export function useWorkerNames() {
  const workers = useWorkers()
  return (id) => workers.find((worker) => worker.id === id)?.name ?? `${id.slice(0, 8)}…`
}
