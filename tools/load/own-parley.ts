/** Owns a service that is started for a load, as the load sees it: where it is, and its end. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { freePorts } from '../cluster/free-ports.ts'

export type OwnServiceWish = { readonly dataDir: string; readonly settings: Readonly<Record<string, string>> }

export type OwnServiceReady = {
  readonly url: string
  readonly sipPort: number
  readonly called: string
  readonly key: string
  readonly accountId: string
  readonly workerId: string
  readonly pid: number
}

export type OwnService = OwnServiceReady & {
  /** Its folder is gone when it resolves. Idempotent. */
  close(): Promise<void>
}

/** As `npm start` starts it. */
const flags = ['--no-warnings', '--max-semi-space-size=8']
const program = path.join(import.meta.dirname, 'parley-process.ts')

export async function openOwnService(settings: Readonly<Record<string, string>> = {}): Promise<OwnService> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-load-'))
  const remove = (): Promise<void> => rm(dataDir, { recursive: true, force: true, maxRetries: 3 })
  const child = fork(program, [], { execArgv: flags })
  const exited = once(child, 'exit')
  // The same for UDP and TCP, which the system would not give.
  const sipPort = String(await freePorts(1))
  child.send({ dataDir, settings: { SIP_PORT: sipPort, ...settings } } satisfies OwnServiceWish)
  const ready = await Promise.race([
    once(child, 'message').then(([message]) => message as OwnServiceReady),
    exited.then(() => null),
  ])
  if (ready === null) {
    await remove()
    throw new Error('the service of the load did not start')
  }
  let closing: Promise<void> | null = null
  const close = async (): Promise<void> => {
    if (child.exitCode === null && child.connected) child.send('close')
    await exited
    await remove()
  }
  return { ...ready, close: () => (closing ??= close()) }
}
