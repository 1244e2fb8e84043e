/** Owns telling two listeners at once: one adds numbers up, the other traces work. */
import type { Telemetry } from '../model/telemetry.ts'

export const joinTelemetry = (numbers: Telemetry, traces: Telemetry): Telemetry => ({
  ...traces,
  isOn: numbers.isOn || traces.isOn,
  count: (...told) => numbers.count(...told),
  observe: (...told) => numbers.observe(...told),
  span(...told) {
    const [counted, traced] = [numbers.span(...told), traces.span(...told)]
    return {
      ...(traced.traceparent && { traceparent: traced.traceparent }),
      end(...how) {
        counted.end(...how)
        traced.end(...how)
      },
    }
  },
})
