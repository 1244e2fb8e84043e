/** A shop with a page of its own: it makes sessions with its key, which the page never sees. `node server.js <parley> <key> <account> <worker> <port>` */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import process from 'node:process'

const [parley, key, accountId, workerId, port] = process.argv.slice(2)
const page = readFileSync(new URL('shop.html', import.meta.url), 'utf8').replaceAll('{{parley}}', parley)

const answer = async (request, response) => {
  if (request.method !== 'POST') return response.setHeader('content-type', 'text/html; charset=utf-8').end(page)
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }
  const wish = { method: 'POST', headers, body: JSON.stringify({ workerId }) }
  const made = await fetch(`${parley}/v1/accounts/${accountId}/web-calls`, wish).catch(() => null)
  response.writeHead(made?.status ?? 502, { 'content-type': 'application/json' }).end(await made?.text())
}
const server = createServer((request, response) => void answer(request, response))
server.listen(Number(port), '127.0.0.1', () => process.stdout.write(`http://127.0.0.1:${server.address().port}/\n`))
