/**
 * The official conformance scenarios for authorization servers, against the whole service. They start with a client that is registered, and print the
 * address that a person has to open; the person is a plain fetch here. With LISTENER_DRIVER set only that driver is proved;
 * uws-under-newer-libc.test.ts runs this file so.
 */
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import type { Test } from 'tap'
import { freePorts, startProgram } from '../peers/peer-program.ts'
import { createFolder } from '../scenes/folder.ts'
import { inTime, until } from '../scenes/in-time.ts'
import { eachDriver, type Driver } from '../scenes/listener.ts'
import { approver, openMcpStage } from '../scenes/mcp-stage.ts'
import { createBrowser, createClient, decide, goToConsent } from '../scenes/oauth.ts'

const root = path.resolve(import.meta.dirname, '../..')
const program = path.join(root, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
const revision = '2026-07-28'

type Check = { readonly id: string; readonly status: string; readonly errorMessage?: string }

await eachDriver({
  async 'passes every scenario of the revision, with nothing left out'(t, driver) {
    const { code, output, results } = await runScenarios(t, driver, 'approve')
    t.same(results, {
      'authorization-code-grant': [['authorization-code-grant', 'SUCCESS', '']],
      'authorization-server-metadata-endpoint': [
        ['authorization-server-metadata', 'SUCCESS', ''],
        ['authorization-server-metadata-cimd', 'SUCCESS', ''],
      ],
    })
    t.equal(code, 0, 'the suite itself says so', { output })
  },
  async 'and gets no code when the person denies'(t, driver) {
    const { code, results } = await runScenarios(t, driver, 'deny')
    t.same(results['authorization-code-grant'], [
      ['authorization-code-grant', 'FAILURE', 'Authorization error: access_denied the person has denied it'],
    ])
    t.equal(code, 1)
  },
})

/** By scenario what each check is, what came of it and why. */
type Results = Readonly<Record<string, readonly (readonly [id: string, status: string, why: string])[]>>

async function runScenarios(t: Test, driver: Driver, decision: 'approve' | 'deny') {
  const { service, url } = await openMcpStage(t, driver)
  const [folder, port] = [await createFolder(t), await freePorts(1)]
  const ask = (request: Request) => fetch(request)
  const clientId = await createClient(ask, service.url).registered({
    redirect_uris: [`http://127.0.0.1:${port}/callback`],
  })
  const given = ['--url', url.origin, '--client-id', clientId, '--resource', url.href, '--port', `${port}`]
  const suite = startProgram(
    path.join(root, 'node_modules/.bin/node'),
    [program, 'authorization', ...given, '--spec-version', revision, '-o', folder],
    folder,
  )
  t.teardown(() => suite.close())
  let isOver = false
  void suite.ended.then(() => (isOver = true))
  const opened = await until(() => {
    if (isOver) throw new Error(`the suite asked nobody: ${suite.output()}`)
    return /^(http\S+\/oauth\/authorize\?\S+)\n/m.exec(suite.output())?.[1]
  }, suite.output)
  const browser = createBrowser(ask, service.url)
  const { back } = await decide(browser, await goToConsent(browser, opened, approver.email), { decision })
  if (back === null) throw new Error('the browser was sent nowhere')
  t.equal((await fetch(back)).status, 200)
  const code = await inTime('the suite to end', suite.ended, suite.output)
  return { code, output: suite.output(), results: await readResults(folder) }
}

async function readResults(folder: string): Promise<Results> {
  const read = async (name: string): Promise<[string, Results[string]]> => {
    const [, scenario = ''] = /^authorization-server-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(name) ?? []
    const checks = JSON.parse(await readFile(path.join(folder, name, 'checks.json'), 'utf8')) as Check[]
    return [scenario, checks.map(({ id, status, errorMessage = '' }) => [id, status, errorMessage])]
  }
  return Object.fromEntries(await Promise.all((await readdir(folder)).map(read)))
}
