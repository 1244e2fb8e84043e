/** Owns the self-test as a whole: a call by browser, one by telephone, and what is reported of them. */
import { systemClock } from '../../../app/clock.ts'
import type { Parley } from '../../../app/parley.ts'
import type { Log } from '../../../model/log.ts'
import { seedSelfTest } from '../demo/seed-demo.ts'
import { runPhoneTest } from './phone-test.ts'
import { reportOf } from './report.ts'
import { runWebTest, type Speak } from './web-test.ts'

type Proving = {
  readonly speak: Speak
  readonly log: Log
  /** Aborted: this process ends. */
  readonly signal: AbortSignal
}

/** A test that cannot run says why; the service runs all the same. */
export async function proof(service: Parley, { speak, log, signal }: Proving): Promise<string> {
  const failed = (error: unknown): string => {
    if (!signal.aborted) log.error('the self-test could not run', { error })
    return error instanceof Error ? error.message : String(error)
  }
  try {
    const account = await seedSelfTest({ ...service, clock: systemClock })
    const web = await runWebTest(service, account, { speak, signal }).catch(failed)
    const { sip } = service
    if (!sip || signal.aborted) return reportOf(web, null)
    return reportOf(web, await runPhoneTest({ ...service, sip }, account, { speak, log, signal }).catch(failed))
  } catch (error) {
    return failed(error)
  }
}
