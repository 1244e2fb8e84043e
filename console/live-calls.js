/** Owns the calls that run now, as the service tells of them: the whole at the beginning and after every break, and from then on what changes. */
import { useEffect, useState } from 'preact/hooks'
import { ask } from './ask.js'

/** @typedef {import('./answers').LiveCall} LiveCall */
/** @typedef {{ calls: ReadonlyMap<string, LiveCall> | null, isConnected: boolean }} Live calls is null until they are known */

/** Ms until a stream that was refused is asked for again. */
const againAfter = 3_000

/**
 * While the page is looked at: browsers have few connections to one host.
 * @param {string} accountId
 * @param {string | null} [callId] of this one only
 * @returns {Live}
 */
export function useLiveCalls(accountId, callId = null) {
  const [live, setLive] = useState(/** @type {Live} */ ({ calls: null, isConnected: false }))
  const isSeen = useIsSeen()
  useEffect(() => {
    if (!isSeen) return
    const query = new URLSearchParams({ accountId, ...(callId !== null && { callId }) })
    /** @type {EventSource | null} */
    let source = null
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer
    let isHere = true
    /** @param {MessageEvent<string>} event */
    const whole = ({ data }) => {
      const { calls } = /** @type {{ calls: LiveCall[] }} */ (JSON.parse(data))
      setLive({ calls: new Map(calls.map((call) => [call.id, call])), isConnected: true })
    }
    /** @param {MessageEvent<string>} event */
    const change = ({ data }) => {
      const { calls, gone } = /** @type {{ calls: LiveCall[], gone: string[] }} */ (JSON.parse(data))
      setLive((before) => {
        const now = new Map(before.calls ?? [])
        for (const call of calls) now.set(call.id, call)
        for (const id of gone) now.delete(id)
        return { calls: now, isConnected: true }
      })
    }
    const lost = () => {
      setLive((before) => ({ ...before, isConnected: false }))
      // Browsers ask again after a break, but not after an answer that was no stream.
      if (source?.readyState === EventSource.CLOSED) again()
    }
    const again = () => {
      clearTimeout(timer)
      // Who is not signed in any more is told by this.
      timer = setTimeout(() => isHere && ask('/console/session').then(open, again), againAfter)
    }
    const open = () => {
      if (!isHere) return
      source = new EventSource(`/console/events?${query}`)
      source.addEventListener('calls', whole)
      source.addEventListener('change', change)
      source.addEventListener('late', () => setLive((before) => ({ ...before, isConnected: false })))
      source.addEventListener('error', lost)
    }
    open()
    return () => {
      isHere = false
      clearTimeout(timer)
      source?.close()
    }
  }, [accountId, callId, isSeen])
  return live
}

function useIsSeen() {
  const [isSeen, setSeen] = useState(!document.hidden)
  useEffect(() => {
    const look = () => setSeen(!document.hidden)
    document.addEventListener('visibilitychange', look)
    return () => document.removeEventListener('visibilitychange', look)
  }, [])
  return isSeen
}
