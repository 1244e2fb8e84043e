/** docs/contract/rest.md "Trunks": what carriers and PBXs ask for is written, read, changed and taken away; what cannot be is named. */
import { test } from 'tap'
import { openSeededApi } from '../scenes/seeded-api.ts'
import { carrierTls, fakeTls } from '../scenes/tls.ts'

test('the settings of a trunk', async (t) => {
  const { ask, own, other } = await openSeededApi(t)
  const at = (path: string) => `/v1/accounts/${own.id}/trunks${path}`
  const send = (method: string, path: string, json: unknown) => ask(at(path), { method, json })
  const post = (changes: object) => send('POST', '', { name: 'Carrier', workerIds: [own.worker.id], ...changes })
  const refusalOf = ({ status, json }: Awaited<ReturnType<typeof post>>): unknown[] => [
    status,
    json.type,
    ...(json.issues ?? []).map((issue: { path: string }) => issue.path),
  ]

  await t.test('all of them read as they were written, and null takes one away', async (t) => {
    const settings = {
      gateways: [{ host: 'sip.carrier.example' }],
      allowedAddresses: ['203.0.113.0/24', 'sip.carrier.example', 'localhost'],
      username: '1002',
      authUsername: 'login7',
      extensions: [{ user: '1001' }, { user: 'sales', workerId: own.worker.id }],
      numberFormat: { called: 'national', calling: 'digits', countryCode: '49' },
      register: true,
      registrar: { host: 'reg.carrier.example', port: 5070, transport: 'tcp' },
      registerExpires: 300,
      outboundProxy: { host: 'edge.carrier.example' },
      callerId: 'username',
      identityHeader: 'preferred',
      displayName: 'Käthe & Co',
      fromDomain: 'acme.example',
      publicName: 'sbc.acme.example',
      headers: { 'X-Caller': '{from}' },
    }
    const { json } = await post(settings)
    t.match(json, settings)
    t.same((await ask(at(`/${json.id}`))).json, json)
    const taken = ['authUsername', 'numberFormat', 'registrar', 'registerExpires', 'outboundProxy', 'displayName']
    const names = [...taken, 'fromDomain', 'publicName']
    const changed = await send('PATCH', `/${json.id}`, Object.fromEntries(names.map((name) => [name, null])))
    const { updatedAt: _, ...kept } = changed.json
    t.same(
      Object.keys(settings).filter((name) => !(name in kept)),
      names.toSorted((one, two) => Object.keys(settings).indexOf(one) - Object.keys(settings).indexOf(two)),
    )
  })

  await t.test('what cannot be is named', async (t) => {
    for (const [path, changes] of [
      ['authUsername', { authUsername: 'a\r\nb' }],
      ['extensions.0.user', { extensions: [{ user: 'a@b' }] }],
      ['extensions.0.workerId', { extensions: [{ user: 'a', workerId: other.worker.id }] }],
      ['extensions.1.user', { extensions: [{ user: 'a' }, { user: 'a' }] }],
      ['numberFormat.called', { numberFormat: { called: 'e164' } }],
      ['numberFormat.countryCode', { numberFormat: { calling: 'national' } }],
      ['registerWith', { registrar: { host: 'a' }, registerWith: 'every' }],
      ['registerExpires', { registerExpires: 5 }],
      ['registrar.host', { registrar: { host: 'a b' } }],
      ['outboundProxy.port', { outboundProxy: { host: 'a', port: 0 } }],
      ['displayName', { displayName: 'a\nb' }],
      ['identityHeader', { identityHeader: 'both' }],
      ['fromDomain', { fromDomain: 'a b' }],
      ['publicName', { publicName: '192.0.2.1' }],
      ['allowedAddresses.0', { allowedAddresses: ['203.0.113.0/33'] }],
      ['allowedAddresses.0', { allowedAddresses: ['a b'] }],
      ['allowedAddresses.0', { allowedAddresses: ['0.0.0.0/0'] }],
      ['allowedAddresses.1', { allowedAddresses: ['203.0.113.7', '::/0'] }],
      ['tlsKey', { tlsCertificate: fakeTls.cert }],
      ['tlsKey', { tlsCertificate: fakeTls.cert, tlsKey: carrierTls.key }],
      ['tlsCertificate', { tlsKey: fakeTls.key }],
      ['tlsKeySet', { tlsKeySet: true }],
    ] as const)
      t.same(refusalOf(await post(changes)), [400, 'VALIDATION_FAILED', path], JSON.stringify(changes).slice(0, 80))
  })

  await t.test('a key is taken and never told', async (t) => {
    const { cert: tlsCertificate, key: tlsKey } = fakeTls
    const made = await post({ tlsCertificate, tlsKey })
    t.match(made.json, { tlsCertificate, tlsKeySet: true })
    const read = await ask(at(`/${made.json.id}`))
    const list = await ask(at(''))
    for (const { text } of [made, read, list]) t.notMatch(text, tlsKey.split('\n')[1])
  })
})
