/** Owns the limits between which each distribution is counted, in the unit in which it is scraped (metric-names.ts). */
import type { histograms, spans } from '../../model/telemetry.ts'

/** Seconds that somebody on the line waits. */
const answer = [0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10]
/** Of a request that stays on the machine or near it. */
const near = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]
/** Of one that goes to somebody else's server. */
const far = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
/** Of work that may wait: it is tried again for days. */
const queued = [0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600]

export const buckets: Readonly<Record<keyof typeof histograms | keyof typeof spans, readonly number[]>> = {
  'turn.latency': answer,
  'turn.barge_in': near,
  'engine.opening': far,
  'call.step': near,
  'api.request': near,
  'leg.loss': [0, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5],
  'leg.jitter': [0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2],
  'leg.round_trip': [0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1],
  'leg.concealed': [0, 0.02, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30],
  'leg.mos': [1.5, 2, 2.5, 3, 3.3, 3.6, 3.8, 4, 4.2, 4.4],
  'delivery.latency': queued,
  'job.wait': queued,
  'ticker.lateness': [0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.5],
  'db.connection_wait': near,
  'db.query': near,
  'bus.request': near,
  'call.length': [1, 5, 15, 30, 60, 120, 180, 300, 600, 1200, 3600],
  'call.set_up': [0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 60],
  'turn.answer': answer,
  'turn.stage': answer,
  'hook.ask': far,
  'tool.run': far,
  'delivery.attempt': far,
  'job.run': far,
}
