// @ts-check
/** Owns the hooks of React over a call: one call per component, ended with it, its state by `useSyncExternalStore`. */
import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { createCall } from './parley-client.js'

/** @import { Call, Level } from './types/parley-client.d.ts' */
/** @import { CallHandle } from './types/parley-react.d.ts' */

const nothing = () => undefined

/** @param {Call | null} call */
export function useCallState(call) {
  const subscribe = useCallback(
    (/** @type {() => void} */ changed) => (call ? call.on('change', changed) : nothing),
    [call],
  )
  const look = useCallback(() => call?.state() ?? null, [call])
  // On a server there is no call.
  return useSyncExternalStore(subscribe, look, () => null)
}

/** Twenty times a second: for the one component that shows it. @param {Call | null} call @returns {Level} */
export function useLevel(call) {
  const [level, setLevel] = useState({ you: 0, agent: 0 })
  useEffect(() => call?.on('level', setLevel), [call])
  return level
}

/** @template {keyof import('./types/parley-client.d.ts').CallEvents} Name @param {Call | null} call @param {Name} name @param {(event: import('./types/parley-client.d.ts').CallEvents[Name]) => void} listener The newest one is called. */
export function useCallEvent(call, name, listener) {
  const newest = useRef(listener)
  useEffect(() => {
    newest.current = listener
  })
  useEffect(() => call?.on(name, (event) => newest.current(event)), [call, name])
}

/** @returns {CallHandle} */
export function useParleyCall() {
  const [call, setCall] = useState(/** @type {Call | null} */ (null))
  const running = useRef(/** @type {Call | null} */ (null))
  const state = useCallState(call)
  const start = useCallback((/** @type {Parameters<typeof createCall>[0]} */ options) => {
    running.current?.hangUp()
    running.current = createCall(options)
    setCall(running.current)
    return running.current
  }, [])
  const hangUp = useCallback(() => running.current?.hangUp(), [])
  useEffect(() => () => running.current?.hangUp(), [])
  return { call, state, isOn: state !== null && state.status !== 'ended', start, hangUp }
}
