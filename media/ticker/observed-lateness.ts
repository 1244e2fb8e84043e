/** Owns what is told of the ticker's lateness: it is counted in buckets, and told every ten seconds and when the ticker stops. */
import type { Telemetry } from '../../model/telemetry.ts'
import { bucketOf, buckets, createLatenessMeter, lateMsOf, type LatenessMeter } from './lateness.ts'

export type ObservedLateness = LatenessMeter & {
  /** What has been counted since the last telling. */
  readonly tell: () => void
}

const tellEvery = 10_000

export function createObservedLateness(telemetry: Telemetry): ObservedLateness {
  const meter = createLatenessMeter()
  if (!telemetry.isOn) return { ...meter, tell() {} }
  const counts = new Uint32Array(buckets)
  let skipped = 0
  let tellAt: number | null = null

  const tell = () => {
    tellAt = null
    for (let bucket = 0; bucket < buckets; bucket++)
      if (counts[bucket]! > 0) telemetry.observe('ticker.lateness', lateMsOf(bucket), {}, counts[bucket])
    counts.fill(0)
    if (skipped > 0) telemetry.count('ticker.skipped', {}, skipped)
    skipped = 0
  }
  return {
    tell,
    read: meter.read,
    totals: meter.totals,
    add(lateMs, now) {
      meter.add(lateMs, now)
      counts[bucketOf(lateMs)]!++
      tellAt ??= now + tellEvery
      if (now >= tellAt) tell()
    },
    skip(count, now) {
      meter.skip(count, now)
      skipped += count
    },
  }
}
