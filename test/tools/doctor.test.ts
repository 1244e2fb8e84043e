/** `npm run doctor`: of this machine as a process of its own, and of a deployment that is well, behind a proxy that loses upgrades, or not there. */
import { execFile } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import path from 'node:path'
import { test, type Test } from 'tap'
import { createPage } from '../../gateway/page.ts'
import { deploymentChecks, type Deployment } from '../../tools/doctor/examine-deployment.ts'
import { examine, resultOf } from '../../tools/doctor/finding.ts'
import { createFolder } from '../scenes/folder.ts'
import { callId, setUpStage } from '../scenes/front-door.ts'

const program = path.resolve(import.meta.dirname, '../../tools/doctor/doctor.ts')

type Told = { ok: boolean; findings: { check: string; result: string; got: string; mend: string | null }[] }

/** As an operator runs it, in an empty folder. */
async function doctor(t: Test, settings: Record<string, string>, args: readonly string[] = []) {
  const folder = await createFolder(t)
  const env = {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    SIP: 'off',
    DATA_DIR: path.join(folder, 'data'),
    ...settings,
  }
  return new Promise<{ code: number; out: string; err: string }>((resolve) => {
    execFile(process.execPath, [program, ...args], { cwd: folder, env }, (error, out, err) =>
      resolve({ code: error ? Number(error.code) : 0, out, err }),
    )
  })
}

const resultsOf = ({ findings }: { findings: readonly { check: string; result: string }[] }) =>
  Object.fromEntries(findings.map(({ check, result }) => [check, result]))

test('a machine is examined with its settings: what is well, what needs a look, what fails with its mend and exit code 1', async (t) => {
  const taken = net.createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => void taken.close())
  const port = String((taken.address() as AddressInfo).port)
  const { code, out } = await doctor(
    t,
    { PORT: port, PUBLIC_ULR: 'https://call.example', DATABASE_URL: 'postgres://u:secret@127.0.0.1:1/parley' },
    ['--json'],
  )
  t.equal(code, 1)
  const told = JSON.parse(out) as Told
  t.equal(told.ok, false)
  t.match(resultsOf(told), {
    settings: 'warn',
    node: 'ok',
    UDP: 'ok',
    'data folder': 'ok',
    'port of HTTP': 'fail',
    database: 'fail',
  })
  for (const { check, result, mend } of told.findings)
    t.equal(mend !== null, result === 'warn' || result === 'fail', `${check}: a mend where one is needed`)
  t.notMatch(out, /secret/)
  const wrong = await doctor(t, { PORT: 'many' })
  t.equal(wrong.code, 1)
  t.match(wrong.out, /✗ settings .*PORT/)
  const misused = await doctor(t, {}, ['no-address'])
  t.equal(misused.code, 2)
  t.match(misused.err, /must be an address that begins with https/)
  t.notMatch(misused.err, /\n {4}at /)
  const [homeless, aimless] = await Promise.all([
    doctor(t, { DATA_DIR: path.join(program, 'data') }),
    doctor(t, {}, ['--sip', '127.0.0.1']),
  ])
  t.match(homeless.out, /✗ data folder .*doctor\.ts is a file/)
  t.match(aimless, { code: 2, out: /^usage: / }, 'options of a deployment, and none is named')
})

/** A telephone exchange that answers whatever it is asked. */
async function openSip(t: Test): Promise<Deployment['sip']> {
  const socket = createSocket('udp4')
  socket.on('message', (question, from) => {
    const headers = question
      .toString()
      .split('\r\n')
      .filter((line) => /^(?:Via|From|To|Call-ID|CSeq):/.test(line))
    socket.send(['SIP/2.0 200 OK', ...headers, 'Content-Length: 0', '', ''].join('\r\n'), from.port, from.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  return { host: '127.0.0.1', port: socket.address().port }
}

async function openDeployment(t: Test) {
  const serve = createPage()
  const stage = await setUpStage(t, {
    async fetch(request) {
      const { pathname, host, searchParams } = new URL(request.url)
      if (pathname === '/health') return Response.json({ status: 'ok' })
      if (pathname === '/ready') return Response.json({ status: 'ready' })
      if (pathname === '/v1/signaling') return Response.json({ details: 'An API key is required.' }, { status: 401 })
      if (pathname !== '/demo/session') return serve(request) ?? new Response(null, { status: 404 })
      if (searchParams.get('token') !== 'page') return new Response(null, { status: 403 })
      const signalingUrl = `ws://${host}/v1/signaling`
      return Response.json({
        callId,
        sessionId: 'session-1',
        signalingUrl,
        token: 'good',
        iceServers: [],
        expiresAt: '',
      })
    },
  })
  return { stage, url: new URL(`http://127.0.0.1:${stage.port}`) }
}

const findingsOf = async (deployment: Deployment) => resultOf(await examine(deploymentChecks(deployment)))

test('a deployment that is well is: up to its sound, by a real call, and its telephones', async (t) => {
  const { stage, url } = await openDeployment(t)
  const told = await findingsOf({ url, token: 'page', sip: await openSip(t) })
  t.ok(told.ok)
  const { TLS, ...others } = resultsOf(told)
  t.equal(TLS, 'warn', 'it has none')
  t.same(new Set(Object.values(others)), new Set(['ok']), JSON.stringify(told))
  t.ok(stage.legs[0]?.heard.some((heard) => heard.startsWith('connected')))
  const { sound } = resultsOf(await findingsOf({ url, token: 'wrong', sip: await openSip(t) }))
  t.equal(sound, 'skipped')
})

test('a proxy that loses upgrades is found out, and who is not there fails in every way that shows it', async (t) => {
  const { url } = await openDeployment(t)
  const proxy = http.createServer((request, response) => {
    void fetch(new URL(request.url ?? '/', url)).then(async (answer) => {
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
    })
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.teardown(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  const behind = new URL(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`)
  const sip = await openSip(t)
  const lossy = resultsOf(await findingsOf({ url: behind, token: null, sip }))
  t.match(lossy, { '/health': 'ok', '/ready': 'ok', WebSocket: 'fail', 'browser SDK': 'warn', sound: 'skipped' })
  const gone = await findingsOf({
    url: new URL('https://127.0.0.1:1'),
    token: 'x',
    sip: { host: '127.0.0.1', port: 1 },
  })
  t.equal(gone.ok, false)
  t.match(resultsOf(gone), { TLS: 'fail', '/health': 'fail', '/ready': 'fail', WebSocket: 'fail', SIP: 'warn' })
})
