/** Owns the service that is called when no deployment is named: this version on embedded defaults, with the demo's account, in a folder that is removed. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { systemClock } from '../../app/clock.ts'
import { readConfig } from '../../app/config.ts'
import { newId, type Core } from '../../app/core.ts'
import { createLog } from '../../app/log.ts'
import { startParley } from '../../app/parley.ts'
import { openScriptCheck } from '../../app/script-check.ts'
import { openEngines } from '../../app/voice-side.ts'
import type { TrunkId } from '../../model/ids.ts'
import { createTrunks } from '../../store/trunks.ts'
import { seedDemo } from '../start/demo/seed-demo.ts'
import { Cannot, orCannot } from '../cannot.ts'
import { freePorts } from '../cluster/free-ports.ts'

export type OwnParley = {
  readonly url: string
  readonly key: string
  readonly sip: { readonly address: string; readonly port: number }
}

export type OwnWish = {
  /** In place of the demo's inbound script. */
  readonly scriptFile?: string | undefined
  /** Where the demo calls telephones. */
  readonly phonePort: number
  /** What it runs with besides, as in `.env`. */
  readonly settings: Readonly<Record<string, string | undefined>>
}

const defaults = {
  PORT: '0',
  LOG_LEVEL: 'error',
  LOAD_GATE: 'off',
  RATE_LIMIT_PER_ADDRESS: '0',
  RATE_LIMIT_PER_ACCOUNT: '0',
  BAN_AFTER: '0',
  SHUTDOWN_GRACE_SECONDS: '2',
} as const

/** Closed with `closing`. Throws when the script has an error. */
export async function openOwnParley(wish: OwnWish, closing: AsyncDisposableStack): Promise<OwnParley> {
  const { scriptFile, settings } = wish
  const script = scriptFile === undefined ? null : await readScript(scriptFile)
  const folder = await mkdtemp(path.join(tmpdir(), 'parley-simulate-'))
  closing.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  const sipPort = await freePorts(2)
  const ports = { SIP_PORT: String(sipPort), SIP_TLS_PORT: String(sipPort + 1) }
  const config = readConfig({ ...defaults, ...ports, DATA_DIR: folder, ...settings })
  const log = createLog(config.logLevel)
  const voices = new AsyncDisposableStack()
  closing.use(voices)
  const engines = openEngines(config, { log, clock: systemClock }, voices).then((opened) => opened.engines)
  let key: string | null = null
  const seed = async (core: Core): Promise<null> => {
    const demo = await seedDemo(core)
    key = demo.apiKey
    const { sql } = core
    const trunks = createTrunks({ ...core, newId })
    const [trunk] = await trunks.list(demo.accountId)
    const gateways = [{ host: '127.0.0.1', port: wish.phonePort }]
    if (trunk) await trunks.change(demo.accountId, trunk.id as TrunkId, { gateways })
    if (script !== null)
      await sql`update documents set content = ${script}
        where account_id = ${demo.accountId} and 'inbound_call_script' = any(tag_keys)`
    return null
  }
  const service = await startParley({ config, log, engines, seed })
  closing.defer(() => service.close())
  if (key === null || !service.sip) throw new Error('the service that is to be called was not made from nothing')
  return { url: service.url, key, sip: service.sip }
}

async function readScript(file: string): Promise<string> {
  const text = await orCannot(`--script ${file}`, () => readFile(file, 'utf8'))
  const check = await openScriptCheck()
  const [fault] = check(text)
  if (fault) throw new Cannot(`--script ${file}:${fault.line}: ${fault.message}`)
  return text
}
