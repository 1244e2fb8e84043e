/** Owns `npm run admin -- webhook …`: what helps who builds a receiver. Needs no database and no running service. */
import process from 'node:process'
import type { WebhookReceiver } from '../callers/webhook-receiver.ts'
import { JsonObject } from '../../model/json.ts'
import { issuesOf } from '../../model/issues.ts'
import { Problem } from '../../model/problem.ts'
import { CustomHeaders, maxHookTimeout } from '../../model/webhook.ts'
import { systemClock } from '../../app/clock.ts'
import { newId } from '../../app/core.ts'
import { arrivalJsonOf, arrivalTextOf } from '../webhook-kit/arrival.ts'
import { doctorReportOf } from '../webhook-kit/doctor-report.ts'
import { examine } from '../webhook-kit/doctor.ts'
import { listenForWebhooks, type ListenOptions } from '../webhook-kit/listen.ts'
import { numberOf, print, readSecret, required, textOf, textsOf, type Commands, type Options } from './command.ts'

export const webhookCommands: Commands = {
  'webhook listen': {
    usage:
      'webhook listen [--secret-file <file, - for standard input> | --secret whsec_…] [--port 4000] [--host 127.0.0.1] [--answer <JSON>] [--status 200] [--json]',
    options: {
      secret: { type: 'string' },
      'secret-file': { type: 'string' },
      port: { type: 'string' },
      host: { type: 'string' },
      answer: { type: 'string' },
      status: { type: 'string' },
      json: { type: 'boolean' },
    },
    run: (_, options) => listen(options),
  },
  'webhook doctor': {
    usage:
      "webhook doctor <url> --secret-file <file, - for standard input> | --secret whsec_… [--only <check or group>,…] [--timeout <ms>] [--header 'Name: value']… [--json]",
    options: {
      secret: { type: 'string' },
      'secret-file': { type: 'string' },
      only: { type: 'string' },
      timeout: { type: 'string' },
      header: { type: 'string', multiple: true },
      json: { type: 'boolean' },
    },
    run: async ([url], options) => examineReceiver(required(url, 'url'), options),
  },
}

async function listen(options: Options): Promise<number> {
  const secret = (await secretOf(options)) ?? null
  const inJson = options['json'] === true
  const receiver = await openListener({
    host: textOf(options, 'host') ?? '127.0.0.1',
    port: numberOf(options, 'port', { least: 0, most: 65_535 }) ?? 4000,
    secret,
    answer: answerOf(textOf(options, 'answer')),
    status: numberOf(options, 'status', { least: 200, most: 599 }) ?? 200,
    now: systemClock.now,
    tell: (arrival) => print(inJson ? arrivalJsonOf(arrival) : arrivalTextOf(arrival)),
  })
  // Before anything is printed: who reads it may end this at once.
  const ended = untilEnded()
  if (secret === null)
    process.stderr.write(
      'WARNING: without --secret NOTHING IS VERIFIED; everybody who reaches this port is believed.\n',
    )
  print(inJson ? JSON.stringify({ listening: receiver.url }) : `Listening on ${receiver.url} (Ctrl-C ends)`)
  await ended
  await receiver.close()
  return 0
}

/** What an operator can mend is said in a sentence. */
async function openListener(options: ListenOptions): Promise<WebhookReceiver> {
  try {
    return await listenForWebhooks(options)
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) throw wrong(`--host, --port: ${error.message}`)
    throw error
  }
}

/** By a signal, or because nobody reads any more what is printed. */
function untilEnded(): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => resolve()
    process.once('SIGINT', end)
    process.once('SIGTERM', end)
    process.stdout.once('error', end)
  })
}

async function examineReceiver(target: string, options: Options): Promise<number> {
  const examination = await examine({
    url: targetOf(target),
    secret: required(await secretOf(options), '--secret-file'),
    only:
      textOf(options, 'only')
        ?.split(',')
        .map((name) => name.trim()) ?? null,
    timeout: numberOf(options, 'timeout', { least: 1, most: maxHookTimeout }) ?? null,
    headers: headersOf(textsOf(options, 'header') ?? []),
    clock: systemClock,
    newId,
  })
  print(options['json'] === true ? JSON.stringify(examination) : doctorReportOf(examination))
  return examination.passed ? 0 : 1
}

function targetOf(text: string): URL {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol)) throw wrong('<url> must be an http or https URL')
  if (url.username !== '' || url.password !== '') throw wrong('<url> must not carry credentials: no subscription may')
  return url
}

function secretOf(options: Options): Promise<string> | string | undefined {
  const file = textOf(options, 'secret-file')
  return file === undefined ? textOf(options, 'secret') : readSecret(file)
}

function answerOf(text: string | undefined): JsonObject | null {
  if (text === undefined) return null
  try {
    return JsonObject.parse(JSON.parse(text))
  } catch {
    throw wrong('--answer must be a JSON object')
  }
}

function headersOf(lines: readonly string[]): Record<string, string> {
  const pairs = lines.map((line) => {
    const [name = '', ...value] = line.split(':')
    return [name.trim(), value.join(':').trim()]
  })
  const given = Object.fromEntries(pairs)
  const parsed = CustomHeaders.safeParse(given)
  if (parsed.success) return parsed.data
  const issues = issuesOf(parsed.error, given)
  throw wrong(`--header: ${issues.map(({ path, message }) => `${path} ${message}`).join('; ')}`)
}

const wrong = (message: string): Problem => new Problem('VALIDATION_FAILED', message)
