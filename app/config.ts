/** Owns the settings: every one comes from the environment, here and nowhere else, and a wrong one is named before anything starts. */
import { existsSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import { coreOf, coreSettings } from './config/core-settings.ts'
import { knowledgeOf, knowledgeSettings } from './config/knowledge-settings.ts'
import { extractionOf, extractionSettings } from './config/extraction-settings.ts'
import { mediaOf, mediaSettings } from './config/media-settings.ts'
import { outgoingOf, outgoingSettings } from './config/outgoing-settings.ts'
import { mayClaimNumbers, phoneOf, phoneSettings } from './config/phone-settings.ts'
import { priceSettings, pricesOf } from './config/price-settings.ts'
import { roleSettings, rolesOf } from './config/role-settings.ts'
import { WrongSettings } from './config/setting.ts'
import { issuesOf } from '../model/issues.ts'
import { telemetryOf, telemetrySettings } from './config/telemetry-settings.ts'
import { voiceOf, voiceSettings } from './config/voice-settings.ts'
import { isForThisMachine, webOf, webSettings } from './config/web-settings.ts'

/** A fragment for each side of the service. */
const Settings = z.object({
  ...roleSettings.shape,
  ...webSettings.shape,
  ...mediaSettings.shape,
  ...phoneSettings.shape,
  ...outgoingSettings.shape,
  ...voiceSettings.shape,
  ...knowledgeSettings.shape,
  ...extractionSettings.shape,
  ...telemetrySettings.shape,
  ...priceSettings.shape,
  ...coreSettings.shape,
})

export const settingNames = Object.keys(Settings.shape)

export type Config = ReturnType<typeof toConfig>

/** The variables of this process; a file `.env` in the working directory adds what is not set. */
export function readEnvironment(): Readonly<Record<string, string | undefined>> {
  if (existsSync('.env')) loadFile('.env')
  return process.env
}

function loadFile(file: string): void {
  try {
    process.loadEnvFile(file)
  } catch (error) {
    throw new WrongSettings(`${file}: the file cannot be read`, { cause: error })
  }
}

/** `npm start` has made this process, and ends with it. */
export const isOfNpm = (): boolean => process.env['npm_lifecycle_event'] !== undefined

/** For libraries that have settings there only. What the operator set stays. */
export function presetVariable(name: string, value: string): void {
  process.env[name] ??= value
}

/** Throws WrongSettings. */
export function readConfig(environment: Environment) {
  const named = Object.fromEntries(
    settingNames.flatMap((name) => {
      const value = valueOf(name, environment)
      return value === undefined ? [] : [[name, value]]
    }),
  )
  const parsed = Settings.safeParse(named)
  if (parsed.success) return toConfig(parsed.data)
  const lines = issuesOf(parsed.error, named).map(({ path, message }) => `${path}: ${message}`)
  if (lines.length === 1) throw new WrongSettings(`The setting ${lines[0]} (see .env.example)`)
  throw new WrongSettings(`These settings are wrong (see .env.example):\n  ${lines.join('\n  ')}`)
}

type Environment = Readonly<Record<string, string | undefined>>

/**
 * `<name>_FILE` names a file that has the value, as secrets of compose and Kubernetes come: what an environment shows to everybody is not in it. Undefined:
 * it is not set, or empty, as compose hands on what it has no value for; of a number that would be 0.
 */
function valueOf(name: string, environment: Environment): string | undefined {
  const [value, file] = [name, `${name}_FILE`].map((key) => environment[key]?.trim() || undefined)
  if (file === undefined) return value
  if (value !== undefined)
    throw new WrongSettings(`${name} and ${name}_FILE: set one of them, they are the same setting`)
  try {
    return readFileSync(file, 'utf8').trim() || undefined
  } catch (error) {
    throw new WrongSettings(`${name}_FILE: the file ${file} cannot be read`, { cause: error })
  }
}

function toConfig(settings: z.infer<typeof Settings>) {
  const isLocal = settings.DATABASE_URL === null && isForThisMachine(settings)
  const web = webOf(settings)
  const { media, mediaThreads, turn } = mediaOf(settings, web.host)
  const { host, tls } = web
  const sharing = rolesOf(settings)
  const phone = phoneOf(settings, { host, tls, publicAddress: media.publicAddress, isLocal })
  return {
    ...sharing,
    ...coreOf(settings, isLocal),
    ...web,
    media,
    mediaThreads,
    turn,
    sip: sharing.roles.has('sip') ? phone : null,
    mayClaimNumbers: mayClaimNumbers(settings),
    ...outgoingOf(settings, isLocal),
    voice: voiceOf(settings),
    ...knowledgeOf(settings),
    extraction: extractionOf(settings),
    ...telemetryOf(settings),
    ...pricesOf(settings),
  }
}
