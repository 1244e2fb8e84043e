/** Owns the count of what was told with a value or a label that the port does not declare, and is left out: it shows a mistake of ours. */
import { Counter, type Registry } from 'prom-client'

export const refusedMetric = {
  name: 'parley_telemetry_refused_total',
  type: 'counter',
  help: 'Numbers that were told with values or labels that are not declared, and were left out',
  labels: {},
  scale: 1,
} as const

export type Refused = { inc(): void }

export function createRefused(registry: Registry): Refused {
  const counter = new Counter({ name: refusedMetric.name, help: refusedMetric.help, registers: [registry] })
  return { inc: () => counter.inc() }
}
