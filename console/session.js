/** Owns whose console it is: who is signed in, for which account, and what their role allows. */
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'

/**
 * @typedef {object} Here
 * @property {import('./answers').Session} session
 * @property {import('./answers').Session['accounts'][number]} account
 * @property {string} api `/v1/accounts/<id>`
 * @property {boolean} mayChange operators and owners
 * @property {boolean} isOwner
 */

/** @type {import('preact').Context<Here | null>} */
export const HereContext = createContext(/** @type {Here | null} */ (null))

/** @returns {Here} */
export function useHere() {
  const here = useContext(HereContext)
  if (!here) throw new Error('outside of a session')
  return here
}

/**
 * @param {import('./answers').Session} session
 * @param {string | null} wanted id of an account
 * @returns {Here | null} null: they belong to no account
 */
export function hereOf(session, wanted) {
  const account = session.accounts.find(({ id }) => id === wanted) ?? session.accounts[0]
  if (!account) return null
  return {
    session,
    account,
    api: `/v1/accounts/${account.id}`,
    mayChange: account.role !== 'viewer',
    isOwner: account.role === 'owner',
  }
}
