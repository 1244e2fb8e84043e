/** Owns a page whose policy keeps its own script away: who looks for complaints of a policy proves by it that they would see one. */
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Teardown } from './database.ts'

const html =
  '<!doctype html><link rel="icon" href="data:,"><title>kept away</title><script>document.title = "run"</script>'

/** Its address. */
export async function openForbiddenScript(t: Teardown): Promise<string> {
  const server = http.createServer((_, answer) =>
    answer
      .setHeader('content-type', 'text/html')
      .setHeader('content-security-policy', "default-src 'none'; img-src data:; script-src 'self'")
      .end(html),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}
