/** Owns `npm run doctor`: examines this machine, or a deployment by its address, says what to mend, and ends with 1 when something fails. */
import process from 'node:process'
import { parseArgs } from 'node:util'
import { readConfig, readEnvironment, settingNames } from '../../app/config.ts'
import { mistypedOf } from '../../app/config/mistyped.ts'
import { WrongSettings } from '../../app/config/setting.ts'
import { checkLinesOf, checkSummaryOf } from '../check-lines.ts'
import { deploymentChecks } from './examine-deployment.ts'
import { machineChecks } from './examine-machine.ts'
import { bad, doubtful, examine, resultOf, well, type Check, type Finding } from './finding.ts'

const usage = `usage: npm run doctor                         examines this machine, with its settings
       npm run doctor -- <https://host>        examines a service that runs there
         [--token <of the page's address>]     with a short call over UDP
         [--sip <host[:port]>]                 where telephones reach it; the same host and 5060 without
       [--json]                                for programs`

async function main(): Promise<void> {
  const { values, positionals } = readArguments()
  const [address, ...more] = positionals
  const isOfDeployment = values.token !== undefined || values.sip !== undefined
  const isWrong = more.length > 0 || (address === undefined && isOfDeployment)
  if (values.help || isWrong) return end(usage, isWrong ? 2 : 0)
  const findings = await examine(address === undefined ? ownChecks() : deploymentChecks(deploymentOf(address, values)))
  const isWell = findings.every(({ verdict }) => verdict !== 'failed')
  end(values.json ? JSON.stringify(resultOf(findings), null, 2) : linesOf(findings), isWell ? 0 : 1)
}

function readArguments() {
  const options = {
    token: { type: 'string' },
    sip: { type: 'string' },
    json: { type: 'boolean' },
    help: { type: 'boolean' },
  } as const
  try {
    return parseArgs({ options, allowPositionals: true })
  } catch (error) {
    throw new WrongSettings(`${error instanceof Error ? error.message : String(error)}\n${usage}`, { cause: error })
  }
}

/** Settings that cannot be read leave nothing else to be examined with. */
function ownChecks(): readonly Check[] {
  const expected = 'all of them are known and right'
  const settings = (look: Check['look']): Check => ({ name: 'settings', expected, look })
  try {
    const environment = readEnvironment()
    const config = readConfig(environment)
    const mistyped = [...mistypedOf(environment, settingNames)].map(
      ([typed, meant]) => `${typed}, which may mean ${meant}`,
    )
    const look = () =>
      mistyped.length === 0
        ? well('right')
        : doubtful(`not known: ${mistyped.join('; ')}`, 'Mend the names: these have no effect.')
    return [settings(look), ...machineChecks(config)]
  } catch (error) {
    if (!(error instanceof WrongSettings)) throw error
    return [settings(() => bad(error.message, 'Mend it, and ask again: docs/settings.md has every setting.'))]
  }
}

function deploymentOf(address: string, { token = null, sip }: { token?: string | null; sip?: string }) {
  const url = URL.parse(address)
  if (!url || !/^https?:$/.test(url.protocol))
    throw new WrongSettings(`${address}: must be an address that begins with https:// or http://`)
  const given = URL.parse(`sip://${sip ?? url.hostname}`)
  if (!given) throw new WrongSettings(`--sip ${sip}: must read like sip.example.com or sip.example.com:5060`)
  return {
    url: new URL('/', url),
    token: token ?? url.searchParams.get('token'),
    sip: { host: given.hostname, port: Number(given.port || 5060) },
  }
}

function linesOf(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ name }) => name.length))
  return [...findings.flatMap((finding) => checkLinesOf(finding, width)), '', checkSummaryOf(findings)].join('\n')
}

function end(text: string, code: number): void {
  process.stdout.write(`${text}\n`, () => process.exit(code))
}

main().catch((error: unknown) => {
  const isOurs = error instanceof WrongSettings
  process.stderr.write(`${isOurs ? error.message : error instanceof Error ? error.stack : String(error)}\n`, () =>
    process.exit(2),
  )
})
