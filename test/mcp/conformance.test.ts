/**
 * The official conformance scenarios that revision 2026-07-28 requires of a server, against the endpoint behind the real rim and a real listener: what the
 * scenarios call by name is beside it in test/scenes/conformance-fixtures.ts. They know no tokens, so that one is put into each request on its way in.
 * With LISTENER_DRIVER set only that driver is proved; uws-under-newer-libc.test.ts runs this file so.
 */
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { createRequestStateCodec, McpServer } from '@modelcontextprotocol/server'
import type { Test } from 'tap'
import { createApi } from '../../api/api.ts'
import type { Fetch } from '../../model/listener.ts'
import { addConformanceFixtures } from '../scenes/conformance-fixtures.ts'
import { createFolder } from '../scenes/folder.ts'
import { eachDriver, serve, type Driver } from '../scenes/listener.ts'
import { openMcp } from '../scenes/mcp.ts'

const root = path.resolve(import.meta.dirname, '../..')
const suite = path.join(root, 'node_modules/@modelcontextprotocol/conformance')
const revision = '2026-07-28'

type Check = { readonly id: string; readonly status: string; readonly errorMessage?: string }
type Results = ReadonlyMap<string, readonly Check[]>

await eachDriver({
  async 'passes every scenario that the revision requires'(t, driver) {
    const { url } = await serveFixtures(t, driver)
    const { code, output, results } = await runScenarios(t, url, ['--requirements', revision])
    const required = await requiredScenarios()
    t.equal(required.length, 37)
    for (const scenario of required) passes(t, scenario, results)
    t.equal(code, 0, 'the suite itself says so', { output })
  },
  async 'and with its own tools those that need nothing else'(t, driver) {
    const { url } = await serveOwnTools(t, driver)
    for (const scenario of [
      'tools-list',
      'dns-rebinding-protection',
      'http-header-validation',
      'server-sse-multiple-streams',
    ]) {
      const { results } = await runScenarios(t, url, ['--scenario', scenario, '--spec-version', revision])
      passes(t, scenario, results)
    }
  },
})

function passes(t: Test, scenario: string, results: Results): void {
  const checks = results.get(scenario) ?? []
  const own = checks.filter(({ id }) => !id.startsWith('wire-schema'))
  t.ok(
    own.some(({ status }) => status === 'SUCCESS'),
    `${scenario} looked at something`,
  )
  t.same(
    checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING'),
    [],
    scenario,
  )
}

/** The suite says itself what a revision requires, and never changes it. */
async function requiredScenarios(): Promise<string[]> {
  const text = await readFile(path.join(suite, `requirements/${revision}.yaml`), 'utf8')
  const [, list = ''] = /^server:\n((?:\s+- .*\n)+)/m.exec(text) ?? []
  return [...list.matchAll(/- (\S+)/g)].map(([, name = '']) => name)
}

async function runScenarios(t: Test, url: string, chosen: readonly string[]) {
  const folder = await createFolder(t)
  const program = [path.join(root, 'node_modules/.bin/node'), path.join(suite, 'dist/index.js')] as const
  const given = [program[1], 'server', '--url', url, '-o', folder, ...chosen]
  const { code, output } = await new Promise<{ code: number; output: string }>((resolve) => {
    execFile(program[0], given, { cwd: folder, maxBuffer: 2 ** 26 }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), output: `${stdout}\n${stderr}`.slice(-4_000) }),
    )
  })
  const results = new Map<string, Check[]>()
  for (const name of await readdir(folder)) {
    const [, scenario = ''] = /^server-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(name) ?? []
    results.set(scenario, JSON.parse(await readFile(path.join(folder, name, 'checks.json'), 'utf8')) as Check[])
  }
  return { code, output, results }
}

async function serveFixtures(t: Test, driver: Driver): Promise<{ url: string }> {
  const codec = createRequestStateCodec<string>({ key: new Uint8Array(32).fill(7) })
  const mcp = await openMcp(t, {
    publicUrl: null,
    served: {
      scopesOf: () => null,
      newServer({ access: { accountId } }) {
        const server = new McpServer(
          { name: 'parley', version: '1' },
          {
            capabilities: { tools: { listChanged: true }, prompts: { listChanged: true } },
            requestState: { verify: codec.verify },
          },
        )
        addConformanceFixtures(server, {
          mint: (state, context) => codec.mint(state, context),
          notify: {
            toolsChanged: () => mcp.endpoint.changed(accountId, { kind: 'tools_list_changed' }),
            promptsChanged: () => mcp.endpoint.changed(accountId, { kind: 'prompts_list_changed' }),
          },
        })
        return server.server
      },
    },
  })
  return serveMcp(t, driver, mcp)
}

const serveOwnTools = async (t: Test, driver: Driver): Promise<{ url: string }> =>
  serveMcp(t, driver, await openMcp(t, { publicUrl: null }))

async function serveMcp(t: Test, driver: Driver, mcp: Awaited<ReturnType<typeof openMcp>>): Promise<{ url: string }> {
  const api = createApi({ ...mcp.deps, publicUrl: null, beside: mcp.endpoint.beside })
  const authorization = `Bearer ${mcp.grant()}`
  const fetch: Fetch = async (request, info) => {
    const headers = new Headers(request.headers)
    headers.set('authorization', authorization)
    const { method, url, signal } = request
    const body = method === 'POST' ? await request.text() : null
    return api(new Request(url, { method, headers, body, signal }), info)
  }
  const { url } = await serve(t, driver, { fetch, maxBodyBytes: 1024 * 1024 })
  return { url: `${url}/mcp` }
}
