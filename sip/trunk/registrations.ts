/** Owns all registrations of a trunk: at its registrar, its first gateway or each of them, and what they come to together. */
import type { TrunkAccess } from '../../model/telephony.ts'
import { registrarsOf, type Gateway, type TrunkState } from '../../model/trunk.ts'
import { createRegistration, type RegistrationDeps, type RegistrationState } from './registration.ts'

export type Registrations = {
  state(): Pick<TrunkState, 'registration' | 'registrationDetails' | 'registeredUntil' | 'registrations'>
  /** Takes them back. Idempotent; bounded. */
  close(): Promise<void>
}

/** Of a trunk that does not register there are none. */
export function createRegistrations(deps: RegistrationDeps, trunk: TrunkAccess): Registrations {
  const places = trunk.settings.register ? registrarsOf(trunk.settings) : []
  const registrations = places.map((place) => ({ place, registration: createRegistration(deps, trunk, place) }))
  return {
    state: () => together(registrations.map(({ place, registration }) => ({ place, state: registration.state() }))),
    async close() {
      await Promise.all(registrations.map(({ registration }) => registration.close()))
    },
  }
}

type Told = { readonly place: Gateway; readonly state: RegistrationState }

/** The worst first: calls that come in by a place that is not registered are lost. */
const order = ['failed', 'registering', 'registered'] as const

function together(told: readonly Told[]): ReturnType<Registrations['state']> {
  const worst = order.flatMap((wanted) => told.filter(({ state }) => state.registration === wanted))[0]
  if (!worst) return { registration: 'none', registrationDetails: null, registeredUntil: null }
  if (told.length === 1) return worst.state
  const each = told.map(({ place: { host, port = null }, state }) => ({ host, port, ...state }))
  return { ...worst.state, registrations: each }
}
