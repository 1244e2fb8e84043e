/** Owns `npm run load`: callers made of software, or recorded ones, against a service; how it fared, as a table, as JSON and as a page. */
import { writeFile } from 'node:fs/promises'
import process from 'node:process'
import { printInAnyCase } from '../start/end-of-process.ts'
import { failureText, isExpected, orCannot, requireWritable } from '../cannot.ts'
import { loadWords, readLoadOptions } from './load-options.ts'
import { reportOf } from './load-report.ts'
import { isGood, jsonOf, summaryOf } from './load-summary.ts'
import { performLoad } from './perform-load.ts'
import { anonymiseFile, record } from './session/session-commands.ts'

const usage = `npm run load -- web|sip|mixed --self [options]                       a service is started for it
npm run load -- web --url http://127.0.0.1:8080 --key <API key>     one that runs
npm run load -- sip --sip 'sip:+12025550100@127.0.0.1:5060'         any SIP host; ;transport=tcp or tls
npm run load -- replay <session file …> --self | --url … | --sip …  calls that were recorded
npm run load -- record web|sip --self | … --out file                a call, or --pcap capture --out file
npm run load -- anonymise <session file> --out file

  --rate 1 --ramp 0 --duration 10    calls a second, seconds until it is reached, seconds in all
  --calls n --hold 20 --at-once 500  at most so many, how long each lasts, how many at once in a process
  --loss 0 --jitter 0 --seed 1       percent and ms of what callers send, by lot that can be had again
  --processes 1                      of the load
  --worker id --from number --say 'yes please' …
  --tls-ca file | --tls-any          who may have signed the certificate of a SIP host
  --expect 'setUp.p95<500' …         also errors<1 (percent), mos.p50>3.5; exit code 1 when one does not hold
  --json file --report file.html     results; the page needs nothing else
  --pid n | --metrics url            CPU and memory of the service
  --i-may-load host                  nothing is sent beyond this machine without it`

const print = (text: string): void => void process.stdout.write(`${text}\n`)

async function main(): Promise<number> {
  printInAnyCase()
  const [word = '', ...given] = process.argv.slice(2)
  const stopping = new AbortController()
  endOnSignals(stopping)
  const deps = { print, stopping: stopping.signal }
  if (word === '' || [word, ...given].includes('--help')) {
    print(usage)
    return 0
  }
  if (word === 'record') return record(given, deps).then(() => 0)
  if (word === 'anonymise') return anonymiseFile(given, deps).then(() => 0)
  if (!loadWords.includes(word)) {
    print(
      `${JSON.stringify(word)} is none of ${[...loadWords, 'record', 'anonymise'].join(', ')}, of which one comes first\n\n${usage}`,
    )
    return 2
  }
  const options = readLoadOptions(word, given)
  for (const name of ['json', 'report'] as const) {
    const file = options[name]
    if (file !== null) await requireWritable(`--${name} ${file}`, file)
  }
  const performed = await performLoad({ options, stopping: stopping.signal, progress: createProgress() })
  print(summaryOf(performed))
  const { json, report } = options
  if (json !== null)
    await orCannot(`--json ${json}`, () => writeFile(json, `${JSON.stringify(jsonOf(performed), null, 2)}\n`))
  if (report !== null) await orCannot(`--report ${report}`, () => writeFile(report, reportOf(performed)))
  return isGood(performed) ? 0 : 1
}

/** The first ends all calls in order; one that comes a second later is somebody who does not want to wait. npm passes a signal on, so that it comes twice. */
function endOnSignals(stopping: AbortController): void {
  let since: number | null = null
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      if (since !== null && performance.now() - since > 1_000) process.exit(130)
      since ??= performance.now()
      stopping.abort()
    })
}

/** One line that is written anew; a line each ten seconds where nobody watches. */
function createProgress(): (line: string) => void {
  let last = Number.NEGATIVE_INFINITY
  return (line) => {
    if (process.stdout.isTTY) return void process.stdout.write(`\r\x1b[K${line}`)
    if (performance.now() - last < 10_000) return
    last = performance.now()
    print(line)
  }
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    // In place of the line that was written anew.
    process.stderr.write(`${process.stdout.isTTY ? '\r\x1b[K' : ''}${failureText(error)}\n`)
    process.exit(isExpected(error) ? 2 : 1)
  },
)
