/**
 * Owns what a call costs by a table that the operator provides. A call has the prices of the version that was valid when it was created. What no
 * price is known of costs null, never nothing, and so does a sum with it in. Pure. docs/usage.md.
 */
import { z } from 'zod'
import { Direction } from './call.ts'
import { Instant, msOf } from './instant.ts'
import { unitsOf, UsageUnit, type CallUsage } from './usage.ts'

const amount = z.number().nonnegative().max(1_000_000)

const EnginePrice = z.strictObject({
  engine: z.string().min(1).max(100),
  model: z.string().min(1).max(200),
  unit: UsageUnit,
  price: amount,
  /** So many units cost it. */
  per: z.number().int().positive().max(1_000_000_000),
})

/** `prefix`: of the number that is called. The most exact one counts: of the trunk before of any, a longer prefix before a shorter one. */
const CarrierPrice = z.strictObject({
  direction: Direction,
  trunkId: z.string().max(100).optional(),
  prefix: z
    .string()
    .regex(/^\+\d{1,15}$/, 'must be the beginning of a number, like +49')
    .optional(),
  perMinute: amount,
  /** A call is charged in steps of so many seconds. */
  stepSeconds: z.number().int().min(1).max(3600).default(60),
})

export const PriceTable = z.strictObject({
  currency: z.string().regex(/^[A-Z]{3}$/, 'must be a currency like EUR'),
  versions: z
    .array(
      z.strictObject({
        version: z.string().min(1).max(100),
        validFrom: Instant,
        engines: z.array(EnginePrice).max(1000).default([]),
        carriers: z.array(CarrierPrice).max(1000).default([]),
      }),
    )
    .min(1)
    .max(1000)
    .refine((all) => new Set(all.map(({ version }) => version)).size === all.length, 'must have different names')
    .refine(
      (all) => new Set(all.map(({ validFrom }) => msOf(validFrom))).size === all.length,
      'must begin at different times',
    ),
})
export type PriceTable = z.infer<typeof PriceTable>
type Version = PriceTable['versions'][number]

export type PricedCall = {
  readonly createdAt: number
  readonly direction: Direction
  readonly toNumber: string | null
  readonly trunkId: string | null
  /** Of a telephone call that is over, from answer to end; null for any other. */
  readonly carrierSeconds: number | null
}

const price = z.number().nullable().describe('Null: nobody knows it.')

export const PricedUsage = z.object({
  speechInSeconds: z.number().describe('Of the caller, as it was understood.'),
  speechOutSeconds: z.number().describe('Of the agent, as it was heard.'),
  toolCalls: z.number().int().describe('How many tools were called.'),
  carrierSeconds: z
    .number()
    .nullable()
    .describe('Of a telephone call that is over, from answer to end; null for any other.'),
  engines: z
    .array(
      z.object({
        engine: z.string().describe('Name of the engine.'),
        model: z.string().describe('Name of the model, as the engine tells it.'),
        unit: UsageUnit.describe(
          'Tokens as the provider reports them (`textIn`, `textInCached`, `audioIn`, `audioInCached`, `textOut`, `audioOut`), milliseconds of sound that was transcribed, or characters that were spoken.',
        ),
        amount: z.number().describe('How many of the unit were used.'),
        price,
      }),
    )
    .describe('What its engines used, by model and unit.'),
  carrierPrice: price.describe('Null: nobody knows it, or there is no carrier.'),
  price: price.describe('Of all of it. Null while one part of it is not known.'),
  currency: z
    .string()
    .nullable()
    .describe('Of all prices, as the operator’s table names it; null where none of its versions holds for the call.'),
  priceVersion: z.string().nullable().describe('Of the operator’s table, valid when the call was created.'),
})
export type PricedUsage = z.infer<typeof PricedUsage>

export function pricedUsageOf(usage: CallUsage, call: PricedCall, table: PriceTable | null): PricedUsage {
  const version = table === null ? null : versionAt(table, call.createdAt)
  const engines = usage.engines.flatMap(({ engine, model, units }) =>
    unitsOf(units).map(([unit, used]) => {
      const known = version?.engines.find(
        (entry) => entry.engine === engine && entry.model === model && entry.unit === unit,
      )
      return { engine, model, unit, amount: used, price: known ? rounded((known.price * used) / known.per) : null }
    }),
  )
  const carrierPrice = version === null ? null : carrierPriceOf(version, call)
  const parts = [...engines.map((part) => part.price), ...(call.carrierSeconds === null ? [] : [carrierPrice])]
  const isKnown = version !== null && !parts.includes(null)
  return {
    speechInSeconds: usage.speechInMs / 1000,
    speechOutSeconds: usage.speechOutMs / 1000,
    toolCalls: usage.toolCalls,
    carrierSeconds: call.carrierSeconds,
    engines,
    carrierPrice,
    price: isKnown ? rounded(parts.reduce<number>((sum, part) => sum + (part ?? 0), 0)) : null,
    currency: version === null ? null : (table?.currency ?? null),
    priceVersion: version?.version ?? null,
  }
}

function versionAt({ versions }: PriceTable, at: number): Version | null {
  const begun = versions.filter(({ validFrom }) => msOf(validFrom) <= at)
  return begun.toSorted((a, b) => msOf(b.validFrom) - msOf(a.validFrom))[0] ?? null
}

function carrierPriceOf({ carriers }: Version, call: PricedCall): number | null {
  const { carrierSeconds, toNumber, trunkId, direction } = call
  if (carrierSeconds === null) return null
  const ofCall = carriers.filter(
    (entry) => entry.direction === direction && (entry.trunkId === undefined || entry.trunkId === trunkId),
  )
  // Of a number that has been erased nobody knows what it cost.
  if (toNumber === null && ofCall.some(({ prefix }) => prefix !== undefined)) return null
  const fitting = ofCall.filter(({ prefix = '' }) => (toNumber ?? '').startsWith(prefix))
  const exactness = (entry: (typeof fitting)[number]): number =>
    (entry.trunkId === undefined ? 0 : 100) + (entry.prefix?.length ?? 0)
  const [best] = fitting.toSorted((a, b) => exactness(b) - exactness(a))
  if (!best) return null
  const charged = Math.ceil(carrierSeconds / best.stepSeconds) * best.stepSeconds
  return rounded((charged / 60) * best.perMinute)
}

/** A millionth of the currency. */
const rounded = (value: number): number => Math.round(value * 1e6) / 1e6
