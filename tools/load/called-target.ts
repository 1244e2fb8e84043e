/** Owns who is called by a load: a service that is started for it, or one that options name, and what callers say to it. */
import { readFile } from 'node:fs/promises'
import { systemClock } from '../../app/clock.ts'
import { silentLog } from '../../model/log.ts'
import { createSynthesiser } from '../../voice/engines/embedded/synthesiser.ts'
import { accountOfKey, askService } from './ask-api.ts'
import type { SipSide, WebTarget } from './load-job.ts'
import type { LoadOptions } from './load-options.ts'
import { costOfMetrics, costOfProcess, type CostReader } from './loaded-cost.ts'
import { openOwnService } from './own-parley.ts'

export type Called = {
  readonly web: WebTarget | null
  readonly sip: SipSide | null
  readonly readCost: CostReader | null
}

export async function calledOf(options: LoadOptions, closing: AsyncDisposableStack): Promise<Called> {
  if (options.isSelf) {
    if (options.transport === 'tls') throw new Error('--self has no certificate: use --transport udp or tcp')
    const own = await openOwnService()
    closing.defer(() => own.close())
    const { called, pid, sipPort, url, key, accountId, workerId } = own
    const target = { protocol: options.transport, host: '127.0.0.1', port: sipPort } as const
    return {
      web: { url, key, accountId, workerId },
      sip: { target, called, calling: options.from },
      readCost: costOfProcess(pid),
    }
  }
  return { web: await webOf(options.web), sip: await sipOf(options), readCost: readerOf(options) }
}

function readerOf({ pid, metrics }: LoadOptions): CostReader | null {
  if (metrics !== null) return costOfMetrics(metrics)
  return pid === null ? null : costOfProcess(pid)
}

async function webOf(web: LoadOptions['web']): Promise<WebTarget | null> {
  if (!web) return null
  const { url, key } = web
  const accountId = await accountOfKey(url, key)
  if (web.workerId !== null) return { url, key, accountId, workerId: web.workerId }
  const workers = (await askService({ url, key, accountId }, { method: 'GET', path: 'workers' })) as unknown
  const first = Array.isArray(workers) ? (workers[0] as { readonly id?: unknown } | undefined) : undefined
  if (typeof first?.id !== 'string') throw new Error('the account has no worker: create one, or name it with --worker')
  return { url, key, accountId, workerId: first.id }
}

async function sipOf({ sip, from, tlsCaFile, trustsAny }: LoadOptions): Promise<SipSide | null> {
  if (!sip) return null
  const { protocol, host, port, called } = sip
  const trust = tlsCaFile === null ? null : await readFile(tlsCaFile, 'utf8')
  const trusted = trustsAny ? ({ trust: 'any' } as const) : { ...(trust !== null && { trust: { ca: trust } }) }
  return { target: { protocol, host, port, ...trusted }, called, calling: from }
}

/** 16 bit at 16 kHz. */
export async function spoken(texts: readonly string[]): Promise<Int16Array[]> {
  const synthesiser = await createSynthesiser({ clock: systemClock, log: silentLog })
  try {
    const sounds: Int16Array[] = []
    for (const text of texts) sounds.push((await synthesiser.speak(text, 'slt')).slice())
    return sounds
  } finally {
    await synthesiser.close()
  }
}
