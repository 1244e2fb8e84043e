/** What programs of ours say when they cannot do what they were asked: one sentence that names what to mend, before any call is placed. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import process from 'node:process'
import { test, type Test } from 'tap'
import { accountOfKey } from '../../tools/account-of-key.ts'
import { Cannot, failureText, orCannot, requireWritable } from '../../tools/cannot.ts'
import { calledOf } from '../../tools/load/called-target.ts'
import { readLoadOptions } from '../../tools/load/load-options.ts'
import { readScenarios } from '../../tools/simulate/read-scenario.ts'
import { createFolder } from '../scenes/folder.ts'

async function serve(t: Test, answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Where nobody listens any more. */
async function goneUrl(): Promise<string> {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return `http://127.0.0.1:${port}`
}

const problem = (statusCode: number, type: string, details: string): string =>
  JSON.stringify({ statusCode, type, localizedKey: 'errors.x', details, requestId: 'r' })

const answering =
  (status: number, body: string, headers: Record<string, string> = {}): RequestListener =>
  (_request, response) =>
    void response.writeHead(status, headers).end(body)

const sentenceOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'nothing is wrong',
    (error: unknown) => (error instanceof Cannot ? error.message : `no sentence: ${String(error)}`),
  )

test('a deployment that takes no key, is none, is overloaded or is not there: each is told for what it is', async (t) => {
  const wrong: readonly (readonly [RequestListener, RegExp])[] = [
    [
      answering(401, problem(401, 'UNAUTHORIZED', 'The key is revoked.')),
      /^--key is not good at http\S+: The key is revoked\.$/,
    ],
    [
      answering(503, problem(503, 'SERVICE_UNAVAILABLE', 'It is stopping.')),
      /refuses with 503 SERVICE_UNAVAILABLE: It is/,
    ],
    [answering(404, '<h1>Not found</h1>'), /is no Parley, or something before it refuses: it answers 404$/],
    [answering(200, '<h1>Welcome</h1>'), /is no Parley: it answers with something else$/],
    [answering(301, '', { location: 'https://calls.example/x' }), /leads elsewhere: name https:\/\/calls\.example if/],
    [(request) => void request.socket.destroy(), /cannot be reached: /],
  ]
  for (const [answer, says] of wrong)
    t.match(await sentenceOf(accountOfKey({ url: await serve(t, answer), key: 'k' })), says)
  const url = await goneUrl()
  t.match(await sentenceOf(accountOfKey({ url, key: 'k' })), /cannot be reached: nobody listens there$/)
  t.match(await sentenceOf(accountOfKey({ url, key: 'two words' })), /^--key is no API key/)
})

test('what a load would find out at its end is looked at before it begins', async (t) => {
  const folder = await createFolder(t)
  t.match(
    await sentenceOf(requireWritable('--json', path.join(folder, 'none/a.json'))),
    /^--json: there is no such file or folder$/,
  )
  t.match(await sentenceOf(requireWritable('--json', folder)), /^--json: it is a folder$/)
  t.equal(await sentenceOf(requireWritable('--json', path.join(folder, 'a.json'))), 'nothing is wrong')
  await using closing = new AsyncDisposableStack()
  const called = (...words: readonly string[]) =>
    sentenceOf(calledOf(readLoadOptions('sip', ['--sip', 'sip:+1@127.0.0.1', ...words]), closing))
  t.match(
    await called('--tls-ca', path.join(folder, 'ca.pem')),
    /^--tls-ca .*ca\.pem: there is no such file or folder$/,
  )
  const metrics = await serve(t, answering(401, ''))
  t.match(
    await called('--metrics', `${metrics}/metrics`),
    /^--metrics http\S+: it answers 401, and no token is sent: --pid/,
  )
  t.match(await called('--metrics', await serve(t, answering(200, 'up 1\n'))), /tells no process_cpu_seconds_total$/)
  t.match(await called('--pid', '4000000'), /^--pid 4000000: there is no such process here/)

  const scenario = path.join(folder, 'a.yaml')
  const turns = 'turns: [{ say: hello, sound: hello.wav }]'
  await writeFile(scenario, `simulation: 1\nname: Says a sound\n${turns}\n`)
  t.match(await sentenceOf(readScenarios([folder])), /a\.yaml: turns\.0\.sound: hello\.wav: there is no such file/)
  await writeFile(path.join(folder, 'hello.wav'), 'no sound')
  t.match(await sentenceOf(readScenarios([folder])), /hello\.wav: it must be a WAV file of 16 bits/)
})

test('what is told already stays as it is, and a bug keeps its stack', async (t) => {
  const told = new Cannot('this is wrong')
  await t.rejects(
    orCannot('that', () => Promise.reject(told)),
    told,
  )
  t.equal(failureText(told), 'this is wrong')
  t.match(failureText(new TypeError('a bug')), /TypeError: a bug\n +at /)
})

test('as commands: one line on standard error, no stack, and the exit code 2', { timeout: 120_000 }, async (t) => {
  const folder = await createFolder(t)
  const run = (tool: string, ...words: readonly string[]) =>
    new Promise<{ code: unknown; err: string }>((resolve) => {
      const program = path.join(import.meta.dirname, '../../tools', tool)
      const options = { cwd: folder, env: { PATH: process.env['PATH'] } }
      execFile(process.execPath, ['--no-warnings', program, ...words], options, (error, _out, err) =>
        resolve({ code: error?.code ?? 0, err: err.trimEnd() }),
      )
    })
  const url = await goneUrl()
  const gone = ['--url', url, '--key', 'k']
  const sip = `sip:+1@${new URL(url).host};transport=tcp`
  const commands: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['load/load.ts', ['web', ...gone], /^--url http:\/\/127\.0\.0\.1:\d+ cannot be reached: nobody listens there$/],
    ['load/load.ts', ['sip', '--sip', sip], /^sip:127\.0\.0\.1:\d+ cannot be reached by tcp: nobody/],
    [
      'load/load.ts',
      ['record', '--pcap', 'none.pcap', '--out', 'a.jsonl'],
      /^--pcap none\.pcap: there is no such file/,
    ],
    ['simulate/simulate.ts', gone, /cannot be reached: nobody listens there$/],
    ['simulate/simulate.ts', ['--script', 'none.txt'], /^--script none\.txt: there is no such file/],
    [
      'simulate/simulate.ts',
      ['from-call', '0190c0de-0000-7000-8000-000000000000'],
      /^DATA_DIR: .*--url and --key ask a deployment/,
    ],
  ]
  const ended = await Promise.all(commands.map(([tool, words]) => run(tool, ...words)))
  for (const [at, [tool, words, says]] of commands.entries()) {
    t.match(ended[at], { code: 2, err: says }, `${tool} ${words.join(' ')}`)
    t.notMatch(ended[at]?.err, /\n/, 'in one line')
  }
})
