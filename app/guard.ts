/** Owns the wiring of the one guard against addresses that fail: telephones, keys and tokens ask the same one, all processes have its bans. */
import { createSharedBans } from '../actors/rounds/shared-bans.ts'
import { createFailureGuard, type FailureGuard } from '../net/failure-guard.ts'
import { networksOf } from '../net/networks.ts'
import type { Config } from './config.ts'
import type { Core } from './core.ts'

export function openGuard(core: Core, config: Config, closing: AsyncDisposableStack): FailureGuard {
  const { clock, log } = core
  const { banAfter, banFor, exempt } = config.bans
  const guard = createFailureGuard({
    now: clock.now,
    banAfter,
    banFor,
    isExempt: networksOf([...exempt, ...config.trustedProxies]).includes,
    banned({ group, isProven, covers, failure }) {
      log.warn('an address is banned', {
        failure,
        isProven,
        covers,
        seconds: banFor / 1000,
        personal: { address: group },
      })
      shared.wake()
    },
  })
  const shared = createSharedBans({ ...core, guard })
  closing.defer(() => shared.close())
  // Those from before a restart.
  shared.wake()
  return guard
}
