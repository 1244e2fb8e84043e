/** The quick way to call a tool, and the library: what both answer is the same. docs/contract/mcp.md "Endpoint". */
import { test } from 'tap'
import { quickCallOf } from '../../mcp/quick-call.ts'
import { modernOf, openMcp } from '../scenes/mcp.ts'

const call = { name: 'account_admin__list_workers', arguments: {} }
const modern = modernOf('tools/call', call)
const json = { 'content-type': 'application/json' }
const both = { accept: 'application/json, text/event-stream' }
const requestWith = (headers: Record<string, string>) =>
  new Request('http://localhost/mcp', { method: 'POST', headers: { ...json, ...both, ...headers } })

void test('what the library answers is answered quickly to the letter', async (t) => {
  const { send, own, other, lines } = await openMcp(t)
  const asked: [string, object][] = [
    ['list_workers', {}],
    ['get_worker_details', { worker_id: own.worker.id }],
    ['get_worker_details', { worker_id: other.worker.id }],
    ['get_worker_details', { colour: 'red', worker_id: 7 }],
    ['list_persons', { limit: 1000 }],
    ['get_account_info', {}],
  ]
  for (const era of ['modern', 'legacy'] as const)
    for (const [name, args] of asked) {
      const params = { name: `account_admin__${name}`, arguments: args }
      const quick = await send('tools/call', params, { era })
      const slow = await send('tools/call', { ...params, _meta: { progressToken: 1 } }, { era })
      t.same(quick.json, slow.json, `${era} ${name}`)
      t.equal(quick.status, slow.status)
      t.match(quick.headers.get('content-type'), 'application/json')
      t.equal(
        slow.headers.get('content-type'),
        era === 'modern' ? 'application/json' : 'text/event-stream',
        'by the library',
      )
    }
  t.notOk(lines.some(({ level }) => level === 'error'))
})

void test('only a request that is to the letter as expected is answered without the library', async (t) => {
  const meta = modern.json.params['_meta'] as object
  t.match(quickCallOf(requestWith(modern.headers), modern.json), { id: 1, name: call.name, given: {}, era: 'modern' })
  const old = { 'mcp-protocol-version': '2025-06-18' }
  const plain = { jsonrpc: '2.0', id: 'a', method: 'tools/call', params: call }
  t.match(quickCallOf(requestWith(old), plain), { id: 'a', era: 'legacy' })

  const params = (change: object) => ({ ...modern.json, params: { ...modern.json.params, ...change } })
  const withMeta = (change: object) => params({ _meta: { ...meta, ...change } })
  const others: Record<string, [Record<string, string>, unknown]> = {
    'a batch': [modern.headers, [modern.json]],
    'a notification': [modern.headers, { ...modern.json, id: undefined }],
    'another method': [modern.headers, { ...modern.json, method: 'tools/list' }],
    'an id that is none': [modern.headers, { ...modern.json, id: 1.5 }],
    'another version of JSON-RPC': [modern.headers, { ...modern.json, jsonrpc: '1.0' }],
    'arguments that are a list': [modern.headers, params({ arguments: [] })],
    'answers to what the tool asked': [modern.headers, params({ inputResponses: {} })],
    'a state that comes back': [modern.headers, params({ requestState: 'x' })],
    'a name that the header says otherwise': [{ ...modern.headers, 'mcp-name': 'other' }, modern.json],
    'a header that is missing': [{ ...modern.headers, 'mcp-method': '' }, modern.json],
    'another revision in the header': [{ ...modern.headers, 'mcp-protocol-version': '2025-11-25' }, modern.json],
    'another revision in the message': [
      modern.headers,
      withMeta({ 'io.modelcontextprotocol/protocolVersion': '2027-01-01' }),
    ],
    'a client without a name': [modern.headers, withMeta({ 'io.modelcontextprotocol/clientInfo': { version: '1' } })],
    'capabilities that are none': [
      modern.headers,
      withMeta({ 'io.modelcontextprotocol/clientCapabilities': { sampling: 1 } }),
    ],
    'a wish for progress': [modern.headers, withMeta({ progressToken: 1 })],
    'an old client that takes no stream': [{ ...old, accept: 'application/json' }, plain],
    'a client that says no revision': [{}, plain],
    'another content type': [{ ...modern.headers, 'content-type': 'text/plain' }, modern.json],
  }
  for (const [what, [headers, body]] of Object.entries(others))
    t.equal(quickCallOf(requestWith(headers), body), null, what)
})
