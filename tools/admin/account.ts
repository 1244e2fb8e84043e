/** Owns the commands of accounts. */
import { AccountConfig, newAccountLimits } from '../../model/account.ts'
import { Problem } from '../../model/problem.ts'
import { RetentionChange } from '../../model/retention.ts'
import { changeRetention } from '../../store/retention.ts'
import { closeAccount } from '../../store/delete-account.ts'
import { changeAccountConfig, createAccount, findAccount, listAccounts } from '../../store/accounts.ts'
import { walkRemoval } from '../../store/removals.ts'
import { isCountry } from '../../net/numbering-plans.ts'
import { newId } from '../../app/core.ts'
import {
  accountOf,
  checked,
  decimalOf,
  idOf,
  numberOf,
  required,
  textOf,
  textsOf,
  type Commands,
  type Options,
} from './command.ts'

const several = { type: 'string', multiple: true } as const

const slugShape = /^[a-z\d]+(?:-[a-z\d]+)*$/

export const accountCommands: Commands = {
  'account list': {
    usage: 'account list',
    async runOn({ sql, print }) {
      for (const { id, slug, name } of await listAccounts(sql)) print(`${id}  ${slug}  ${name}`)
      return 0
    },
  },
  'account create': {
    usage: 'account create <name> <slug> [--country <home country, like DE>]',
    options: { country: { type: 'string' } },
    async runOn({ sql, print }, [name, slug], options) {
      if (!slugShape.test(required(slug, 'slug')))
        throw new Problem('VALIDATION_FAILED', '<slug> must be lower-case letters, digits and single hyphens')
      const homeCountry = countryIn(options)
      const config = { ...newAccountLimits, ...(homeCountry && { homeCountry }) }
      const account = { name: required(name, 'name'), slug: required(slug, 'slug'), config, newId, now: Date.now() }
      print((await createAccount(sql, account)).id)
      return 0
    },
  },
  'account limits': {
    usage:
      'account limits <accountId> [--prefix <beginning of numbers, like +49>]… [--calls-per-second <n>] [--daily-minutes <n>]\n' +
      '    [--home-only on|off] [--country <home country, like DE>]\n' +
      '    [--max-calls <n>] [--transfer-number <number>]… [--embedded-fallback on|off] [--recording on|off]\n' +
      '    [--supervision on|off] [--capture-sound on|off] [--confirm-calls on|off] [--clear <name of a limit>]…',
    options: {
      prefix: several,
      'calls-per-second': { type: 'string' },
      'daily-minutes': { type: 'string' },
      'home-only': { type: 'string' },
      country: { type: 'string' },
      'max-calls': { type: 'string' },
      'transfer-number': several,
      'embedded-fallback': { type: 'string' },
      recording: { type: 'string' },
      supervision: { type: 'string' },
      'confirm-calls': { type: 'string' },
      'capture-sound': { type: 'string' },
      clear: several,
    },
    async runOn({ sql, print }, [account], options) {
      const accountId = await accountOf(sql, account)
      const changed = await changeAccountConfig(
        sql,
        accountId,
        { ...clearedOf(options), ...limitsOf(options) },
        Date.now(),
      )
      print(JSON.stringify(changed?.config, null, 2))
      return 0
    },
  },
  'account delete': {
    usage: 'account delete <accountId> <slug, so that it is surely the one>',
    async runOn({ sql, print }, [account, slug]) {
      const accountId = idOf<'account'>(account, 'accountId')
      const found = await findAccount(sql, accountId)
      if (!found) throw new Problem('NOT_FOUND', 'there is no such account')
      if (required(slug, 'slug') !== found.slug)
        throw new Problem('VALIDATION_FAILED', `<slug> must be ${found.slug}, that of the account`)
      const removal = await closeAccount(sql, accountId)
      if (!removal) throw new Problem('NOT_FOUND', 'there is no such account')
      print(
        `${found.slug} is closed: its keys, users, trunks and workers are gone. Its calls go now; the service goes on with it if this is broken off.`,
      )
      await walkRemoval(sql, removal)
      print('deleted; recordings go within ten minutes while the service runs')
      return 0
    },
  },
  'account retention': {
    usage:
      'account retention <accountId> [--recordings <days, or off>] [--transcripts <days, or off>] [--calls <days, or off>]\n' +
      '    [--audit-log <30 days or more, or off>]',
    options: {
      recordings: { type: 'string' },
      transcripts: { type: 'string' },
      calls: { type: 'string' },
      'audit-log': { type: 'string' },
    },
    async runOn({ sql, print }, [account], options) {
      const change = checked(RetentionChange, {
        recordingDays: daysIn(options, 'recordings'),
        transcriptDays: daysIn(options, 'transcripts'),
        callDays: daysIn(options, 'calls'),
        auditLogDays: daysIn(options, 'audit-log'),
      })
      const retention = await changeRetention(sql, await accountOf(sql, account), change, Date.now())
      print(JSON.stringify(retention, null, 2))
      return 0
    },
  },
}

/** Null: for ever. */
const daysIn = (options: Options, name: string): number | null | undefined =>
  textOf(options, name) === 'off' ? null : numberOf(options, name, { least: 1, most: 36_500 })

/** What is not named stays; lists are replaced whole. */
const limitsOf = (options: Options) =>
  checked(AccountConfig, {
    allowedDestinations: textsOf(options, 'prefix'),
    maxCallsPerSecond: decimalOf(options, 'calls-per-second'),
    dailyMinutes: numberOf(options, 'daily-minutes', { least: 0, most: 999_999 }),
    homeCountryOnly: switchOf(options, 'home-only'),
    homeCountry: countryIn(options),
    maxConcurrentCalls: numberOf(options, 'max-calls', { least: 0, most: 100_000 }),
    allowedTransferNumbers: textsOf(options, 'transfer-number'),
    embeddedFallback: switchOf(options, 'embedded-fallback'),
    recordingEnabled: switchOf(options, 'recording'),
    supervisionEnabled: switchOf(options, 'supervision'),
    captureSound: switchOf(options, 'capture-sound'),
    require_confirmation_for_outbound_calls: switchOf(options, 'confirm-calls'),
  })

function switchOf(options: Options, name: string): boolean | undefined {
  const given = textOf(options, name)
  if (given === undefined) return undefined
  if (given !== 'on' && given !== 'off') throw new Problem('VALIDATION_FAILED', `--${name} must be on or off`)
  return given === 'on'
}

function countryIn(options: Options): string | undefined {
  const country = textOf(options, 'country')?.toUpperCase()
  if (country === undefined || isCountry(country)) return country
  throw new Problem('VALIDATION_FAILED', '--country must be two letters of a country, like DE')
}

const limitNames = {
  prefix: 'allowedDestinations',
  'calls-per-second': 'maxCallsPerSecond',
  'daily-minutes': 'dailyMinutes',
  'home-only': 'homeCountryOnly',
  country: 'homeCountry',
  'max-calls': 'maxConcurrentCalls',
  'transfer-number': 'allowedTransferNumbers',
  'embedded-fallback': 'embeddedFallback',
  recording: 'recordingEnabled',
  supervision: 'supervisionEnabled',
  'capture-sound': 'captureSound',
  'confirm-calls': 'require_confirmation_for_outbound_calls',
} as const satisfies Record<string, keyof AccountConfig>

function clearedOf(options: Options): { readonly [Key in keyof AccountConfig]: null } {
  const names = Object.entries(limitNames)
  const keys = (textsOf(options, 'clear') ?? []).map((given) => {
    const [, key] = names.find(([name]) => name === given) ?? []
    if (!key) throw new Problem('VALIDATION_FAILED', `--clear must be one of ${names.map(([name]) => name).join(', ')}`)
    return [key, null] as const
  })
  return Object.fromEntries(keys)
}
