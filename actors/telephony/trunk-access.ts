/** Owns the step from a trunk's row to what the SIP edge gets: its secrets opened. */
import type { Log } from '../../model/log.ts'
import type { TrunkAccess } from '../../model/telephony.ts'
import type { SecretBox } from '../../store/secret-box.ts'
import type { TrunkRow } from '../../store/telephony.ts'
import { passwordPlace, tlsKeyPlace } from '../../store/trunks.ts'

export type TrunkAccessDeps = { readonly box: SecretBox; readonly log: Log }

/** Throws for a secret that was sealed with another key. */
export function accessOf({ box }: Pick<TrunkAccessDeps, 'box'>, trunk: TrunkRow): TrunkAccess {
  const { id, accountId, name, config, password, tlsKey, realms } = trunk
  const opened = (sealed: string | null, place: string): string | null =>
    sealed === null ? null : box.open(sealed, place)
  const key = config.tlsCertificate ? opened(tlsKey, tlsKeyPlace(trunk)) : null
  const tls = config.tlsCertificate && key !== null ? { cert: config.tlsCertificate, key } : null
  const access = { id, accountId, name, settings: config, password: opened(password, passwordPlace(trunk)) }
  return { ...access, ...(realms && { realms }), ...(tls && { tls }) }
}

/** One trunk whose secrets do not open is left out, and does not take the others along. */
export function accessOfAll(deps: TrunkAccessDeps, trunks: readonly TrunkRow[]): TrunkAccess[] {
  return trunks.flatMap((trunk) => {
    try {
      return [accessOf(deps, trunk)]
    } catch (error) {
      deps.log.error('the password of a trunk does not open', { accountId: trunk.accountId, trunkId: trunk.id, error })
      return []
    }
  })
}
