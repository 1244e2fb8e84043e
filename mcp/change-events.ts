/**
 * Owns how clients that listen learn of changes, in every process of the service: a change of one account is told to the streams of that account
 * only. docs/contract/mcp.md "Streams".
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { ServerEvent, ServerEventBus } from '@modelcontextprotocol/server'
import type { Bus } from '../model/bus.ts'
import type { Cancel } from '../model/clock.ts'
import type { AccountId } from '../model/ids.ts'
import type { Log } from '../model/log.ts'

const subject = 'mcp.changes'

/** Whose stream is about to be opened. `began`: it listens, until what comes back is called. One that asks for nothing never does. */
type Listening = { readonly accountId: AccountId; readonly began: () => Cancel }

export type ChangeEvents = {
  /** For the library. Who publishes by it tells all accounts. */
  readonly bus: ServerEventBus
  publish(accountId: AccountId, event: ServerEvent): void
  /** `open` opens one stream at most. */
  listenFor<Opened>(listening: Listening, open: () => Opened): Opened
  /** Streams of the account that are open in this process. */
  count(accountId: AccountId): number
  close(): void
}

type Told = { readonly accountId: AccountId | null; readonly event: ServerEvent }
type Listener = { readonly accountId: AccountId | null; readonly hear: (event: ServerEvent) => void }

export function createChangeEvents(bus: Bus, log: Log): ChangeEvents {
  const opening = new AsyncLocalStorage<Listening>()
  const listeners = new Set<Listener>()
  const counts = new Map<AccountId, number>()
  const subscription = bus.subscribe(subject, ({ payload }) => {
    const told = toldBy(payload, log)
    for (const { accountId, hear } of listeners)
      if (told && (told.accountId === null || told.accountId === accountId)) hear(told.event)
  })
  const publish = (told: Told): void => bus.publish(subject, new TextEncoder().encode(JSON.stringify(told)))
  const add = (accountId: AccountId, change: 1 | -1): void => {
    const count = (counts.get(accountId) ?? 0) + change
    if (count > 0) counts.set(accountId, count)
    else counts.delete(accountId)
  }
  return {
    bus: {
      publish: (event) => publish({ accountId: null, event }),
      subscribe(hear) {
        const { accountId = null, began } = opening.getStore() ?? {}
        const listener = { accountId, hear }
        listeners.add(listener)
        if (accountId) add(accountId, 1)
        const ended = began?.()
        return () => {
          if (!listeners.delete(listener)) return
          if (accountId) add(accountId, -1)
          ended?.()
        }
      },
    },
    publish: (accountId, event) => publish({ accountId, event }),
    listenFor: (listening, open) => opening.run(listening, open),
    count: (accountId) => counts.get(accountId) ?? 0,
    close: () => subscription.close(),
  }
}

/** Only processes of this service write there; one of another version may write otherwise. */
function toldBy(payload: Uint8Array, log: Log): Told | null {
  try {
    return JSON.parse(new TextDecoder().decode(payload)) as Told
  } catch (error) {
    log.warn('a change of MCP tools cannot be read', { error })
    return null
  }
}
