/** Owns who is called by a load: a service that is started for it, or one that options name, and what callers say to it. */
import { readFile } from 'node:fs/promises'
import { systemClock } from '../../app/clock.ts'
import { silentLog } from '../../model/log.ts'
import { createSynthesiser } from '../../voice/engines/embedded/synthesiser.ts'
import { accountOfKey } from '../account-of-key.ts'
import { Cannot, orCannot } from '../cannot.ts'
import { askService } from './ask-api.ts'
import type { SipSide, WebTarget } from './load-job.ts'
import type { LoadOptions } from './load-options.ts'
import { costOfMetrics, costOfProcess, scrape, type CostReader } from './loaded-cost.ts'
import { openOwnService } from './own-parley.ts'

export type Called = {
  readonly web: WebTarget | null
  readonly sip: SipSide | null
  readonly readCost: CostReader | null
}

export async function calledOf(options: LoadOptions, closing: AsyncDisposableStack): Promise<Called> {
  if (options.isSelf) {
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
  return { web: await webOf(options.web), sip: await sipOf(options), readCost: await readerOf(options) }
}

/** Who tells nothing now is told of now, and not by a gap in the report. */
async function readerOf({ pid, metrics }: LoadOptions): Promise<CostReader | null> {
  if (metrics !== null) {
    const samples = await orCannot(`--metrics ${metrics}`, () => scrape(metrics))
    if (!samples.has('process_cpu_seconds_total'))
      throw new Cannot(`--metrics ${metrics} tells no process_cpu_seconds_total`)
    return costOfMetrics(metrics)
  }
  if (pid === null) return null
  const read = costOfProcess(pid)
  if ((await read()) === null)
    throw new Cannot(`--pid ${pid}: there is no such process here, or no /proc to look at it`)
  return read
}

async function webOf(web: LoadOptions['web']): Promise<WebTarget | null> {
  if (!web) return null
  const { url, key } = web
  const accountId = await accountOfKey({ url, key })
  const ask = (what: string, path: string): Promise<unknown> =>
    orCannot(what, () => askService({ url, key, accountId }, { method: 'GET', path }))
  if (web.workerId !== null) {
    await ask(`--worker ${web.workerId}`, `workers/${encodeURIComponent(web.workerId)}`)
    return { url, key, accountId, workerId: web.workerId }
  }
  const workers = await ask(`the workers of ${url}`, 'workers')
  const first = Array.isArray(workers) ? (workers[0] as { readonly id?: unknown } | undefined) : undefined
  if (typeof first?.id !== 'string') throw new Cannot('the account has no worker: create one, or name it with --worker')
  return { url, key, accountId, workerId: first.id }
}

async function sipOf({ sip, from, tlsCaFile, trustsAny }: LoadOptions): Promise<SipSide | null> {
  if (!sip) return null
  const { protocol, host, port, called } = sip
  const trust = tlsCaFile === null ? null : await orCannot(`--tls-ca ${tlsCaFile}`, () => readFile(tlsCaFile, 'utf8'))
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
