/** Owns how a command line says how many processes a cluster has of each kind. */
import type { Counts } from './topology.ts'

const count = (usual: string) => ({ type: 'string', default: usual }) as const

export const countOptions = {
  actors: count('2'),
  gateways: count('2'),
  sip: count('2'),
  api: count('1'),
  whole: count('0'),
  nats: count('1'),
} as const

const most = 16

/** Throws with what is wrong. Whole processes stand in place of all others. */
export function countsFrom(given: Readonly<Record<keyof typeof countOptions, string>>): Counts {
  const read = (name: keyof typeof countOptions): number => {
    const value = Number(given[name])
    if (!Number.isInteger(value) || value < 0 || value > most)
      throw new Error(`--${name} must be a whole number from 0 to ${most}`)
    return value
  }
  const [whole, nats] = [read('whole'), read('nats')]
  if (nats !== 1 && nats !== 3) throw new Error('--nats must be 1 or 3')
  if (whole > 0) return { whole, nats, actors: 0, gateways: 0, sip: 0, api: 0 }
  const split = { actors: read('actors'), gateways: read('gateways'), sip: read('sip'), api: read('api') }
  if (split.actors === 0 || split.api === 0) throw new Error('--actors and --api must be 1 at least')
  return { whole, nats, ...split }
}
