/** Owns the names of who acts in an account: people and keys, by their ids. Who is gone has none. */
import { useMemo } from 'preact/hooks'
import { useHere } from './session.js'
import { useLoaded } from './use-loaded.js'

/** @param {boolean} isAsked who may not see keys asks for nothing */
export function useActorNames(isAsked) {
  const { api } = useHere()
  const users = /** @type {import('./answers').User[] | null} */ (useLoaded(isAsked ? `${api}/users` : null).value)
  const keys = /** @type {import('./answers').ApiKey[] | null} */ (useLoaded(isAsked ? `${api}/api-keys` : null).value)
  const names = useMemo(
    () =>
      new Map([
        ...(users ?? []).map(({ id, name, email }) => /** @type {const} */ ([id, name ?? email])),
        ...(keys ?? []).map(({ id, name }) => /** @type {const} */ ([id, name])),
      ]),
    [users, keys],
  )
  return (/** @type {string} */ id) => names.get(id)
}
