/** Owns one running service: its parts opened in order, closed in reverse, and the orderly end of its calls before that. */
import type { Engines } from '../actors/call/engine-choice.ts'
import type { Listener } from '../model/listener.ts'
import type { Log } from '../model/log.ts'
import type { SecretBox } from '../store/secret-box.ts'
import type { Sql } from '../store/sql.ts'
import type { Lateness } from '../voice/audio/lateness.ts'
import { openCallSide } from './call-side.ts'
import type { Config } from './config.ts'
import { openCore } from './core.ts'
import { openFrontDoor, type Demo } from './front-door.ts'

export type Parley = {
  /** Where page and API are, as this machine reaches them. */
  readonly url: string
  readonly sql: Sql
  readonly box: SecretBox
  /** Of the beat that all media of this process shares. */
  lateness(): Lateness
  /** Calls that have an actor in this process. */
  running(): number
  /** No new calls; running ones have SHUTDOWN_GRACE_SECONDS to end by themselves; their ends are processed and delivered. Idempotent. */
  close(): Promise<void>
}

/** `engines` belong to the caller, who closes them after the service. `seed` runs before anything listens. */
export async function startParley(deps: {
  readonly config: Config
  readonly log: Log
  readonly engines: Engines
  readonly seed: (sql: Sql) => Promise<Demo | null>
}): Promise<Parley> {
  const { config, log } = deps
  await using opening = new AsyncDisposableStack()
  const core = await openCore(config, log, opening)
  const demo = await deps.seed(core.sql)
  const calls = openCallSide(core, config, deps.engines, opening)
  const { listener, ticker } = await openFrontDoor({ core, config, calls, demo }, opening)
  await calls.start()

  const parts = opening.move()
  const end = async (): Promise<void> => {
    try {
      await calls.end(config.shutdownGrace)
    } finally {
      await parts.disposeAsync()
    }
  }
  let ended: Promise<void> | null = null
  return {
    url: urlOf(config, listener),
    sql: core.sql,
    box: core.box,
    lateness: () => ticker.lateness(),
    running: () => calls.running(),
    close: () => (ended ??= end()),
  }
}

function urlOf(config: Config, { port }: Listener): string {
  const wildcard = config.host === '0.0.0.0' || config.host === '::'
  const host = wildcard ? '127.0.0.1' : config.host
  return `${config.tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}
