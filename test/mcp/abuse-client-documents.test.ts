/**
 * docs/security.md and draft-ietf-oauth-client-id-metadata-document section 6: whoever names an address as a client has this service fetch it. Whatever
 * stands there, or where the name leads, nothing inside is reached, nothing is read for long or without end, and nobody is asked to approve it.
 */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import https from 'node:https'
import net, { type AddressInfo } from 'node:net'
import tls from 'node:tls'
import t, { test } from 'tap'
import { createDocumentFetcher } from '../../actors/webhooks/document-fetcher.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { until } from '../scenes/in-time.ts'
import { createBrowser, createClient, createVerifier, openOauthOn, redirectUri } from '../scenes/oauth.ts'
import { fakeTls } from '../scenes/tls.ts'

const publicUrl = 'https://calls.example'
const database = await openTestDatabase(t)

/** A host of clients with a certificate that is believed: each path answers as the test says. */
async function openHost(t: { teardown(close: () => void): unknown }) {
  const answers = new Map<string, (response: ServerResponse) => void>()
  const asked: string[] = []
  const server = https.createServer(fakeTls, (request, response) => {
    asked.push(request.url ?? '')
    answers.get(request.url ?? '')?.(response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  tls.setDefaultCACertificates([fakeTls.cert])
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const origin = `https://localhost:${(server.address() as AddressInfo).port}`
  const at = (path: string, answer: (response: ServerResponse) => void): string => {
    answers.set(path, answer)
    return origin + path
  }
  const documented = (path: string, document: (url: string) => unknown, headers: Record<string, string> = {}): string =>
    at(path, (response) => {
      response.writeHead(200, { 'content-type': 'application/json', ...headers })
      const said = document(origin + path)
      response.end(typeof said === 'string' ? said : JSON.stringify(said))
    })
  return { origin, asked, at, documented }
}

const good = (url: string) => ({
  client_id: url,
  client_name: 'A client with a document',
  redirect_uris: [redirectUri],
  token_endpoint_auth_method: 'none',
})

async function openServer(fetcher: ReturnType<typeof createDocumentFetcher>) {
  const oauth = await openOauthOn(database, { publicUrl, fetchDocument: fetcher.fetch })
  const ask = (request: Request) => oauth.fetch(request, { remoteAddress: '192.0.2.7' })
  const client = createClient(ask, publicUrl)
  /** Where the browser is sent when it brings this client; null: nowhere. */
  const begin = async (clientId: string) => {
    const browser = createBrowser(ask, publicUrl)
    const { status, location } = await browser.get(client.authorizeUrl(clientId, createVerifier()))
    return { status, location }
  }
  return { begin, log: oauth.log }
}

test('what a hostile host answers', { timeout: 30_000 }, async (t) => {
  const host = await openHost(t)
  const clock = createHandClock()
  const fetcher = createDocumentFetcher({ allowHosts: ['localhost'], clock })
  t.teardown(() => fetcher.close())
  const { begin } = await openServer(fetcher)

  await t.test('a good document is a client that a person may be asked about', async (t) => {
    const { status, location } = await begin(host.documented('/good.json', good))
    t.equal(status, 303)
    t.match(location, /^(?:https:\/\/calls\.example)?\//, 'the browser stays here')
  })

  const wrong: Readonly<Record<string, (url: string) => unknown>> = {
    'the document of another client': () => good('https://other.example/client.json'),
    'no name': (url) => ({ ...good(url), client_name: undefined }),
    'no redirect': (url) => ({ ...good(url), redirect_uris: [] }),
    'a redirect of another kind': (url) => ({ ...good(url), redirect_uris: ['javascript:alert(1)'] }),
    'a redirect with a fragment': (url) => ({ ...good(url), redirect_uris: [`${redirectUri}#there`] }),
    'another redirect than the one asked for': (url) => ({
      ...good(url),
      redirect_uris: ['https://client.example/other'],
    }),
    'a secret': (url) => ({ ...good(url), client_secret: 'known to everybody' }),
    'a list': () => [1, 2],
    null: () => null,
    'no JSON': () => '<html>',
    'a prototype': () => '{"__proto__":{"client_name":"x"},"constructor":{"prototype":{}}}',
    nothing: () => '',
  }
  for (const [what, document] of Object.entries(wrong))
    await t.test(`${what} is no client`, async (t) => {
      const { status, location } = await begin(host.documented(`/${encodeURIComponent(what)}.json`, document))
      t.equal(status, 400)
      t.equal(location, null, 'the browser is sent nowhere')
    })

  await t.test('a redirect is not followed', async (t) => {
    const inside = host.documented('/inside.json', good)
    const { status } = await begin(
      host.at('/away.json', (response) => response.writeHead(302, { location: inside }).end()),
    )
    t.equal(status, 400)
    t.notOk(host.asked.includes('/inside.json'))
  })

  await t.test('a document without end is read to its limit and no further', async (t) => {
    let sent = 0
    const ended = Promise.withResolvers<void>()
    const endless = host.at('/endless.json', (response) => {
      response.on('close', () => ended.resolve())
      response.writeHead(200, { 'content-type': 'application/json' })
      const chunk = '{"client_name":"'.padEnd(16_384, 'x')
      const more = () => {
        while (!response.destroyed && response.write(chunk)) sent += chunk.length
      }
      response.on('drain', more)
      more()
    })
    t.equal((await begin(endless)).status, 400)
    await ended.promise
    t.ok(sent < 8 * 1024 * 1024, `${sent} bytes were taken by sockets`)
  })

  await t.test('a look at a document is over after five seconds, however it drips', async (t) => {
    const ended = Promise.withResolvers<void>()
    const slow = host.at('/slow.json', (response) => {
      response.on('close', () => ended.resolve())
      response.writeHead(200, { 'content-type': 'application/json' }).write('{')
    })
    let answer: Awaited<ReturnType<typeof begin>> | null = null
    const begun = begin(slow).then((given) => (answer = given))
    let looks = 0
    await until(() => {
      const seen = host.asked.filter((path) => path === '/slow.json').length
      if (seen > looks) clock.advance(5_000)
      looks = seen
      return answer !== null
    })
    t.equal((await begun).status, 400)
    t.ok(looks <= 2, `it was looked at ${looks} times for one request`)
    await ended.promise
  })
})

test('where its name leads', { timeout: 30_000 }, async (t) => {
  let connections = 0
  const inside = net.createServer((socket) => {
    connections += 1
    socket.destroy()
  })
  inside.listen(0, '127.0.0.1')
  await once(inside, 'listening')
  t.teardown(() => void inside.close())
  const { port } = inside.address() as AddressInfo
  const resolved: string[] = []
  const resolve = async (hostname: string): Promise<readonly string[]> => {
    resolved.push(hostname)
    return hostname.startsWith('mixed') ? ['8.8.8.8', '127.0.0.1'] : ['127.0.0.1']
  }
  const fetcher = createDocumentFetcher({ allowHosts: [], clock: createHandClock(), resolve })
  t.teardown(() => fetcher.close())
  const { begin } = await openServer(fetcher)

  const hosts = [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f.1',
    '0177.0.0.1',
    '0.0.0.0',
    '10.0.0.1',
    '169.254.169.254',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[fe80::1]',
    '[64:ff9b::7f00:1]',
    'rebound.test',
    'mixed.test',
  ]
  for (const name of hosts) {
    const { status, location } = await begin(`https://${name}:${port}/client.json`)
    t.equal(status, 400, name)
    t.equal(location, null)
  }
  for (const id of [
    `http://127.0.0.1:${port}/client.json`,
    `https://user:pass@rebound.test:${port}/c`,
    `file:///etc/passwd`,
  ])
    t.equal((await begin(id)).status, 400, id)
  t.same([...new Set(resolved)], ['rebound.test', 'mixed.test'], 'names are resolved where they are dialed')
  t.equal(connections, 0, 'nothing inside was reached')
})
