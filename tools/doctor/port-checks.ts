/** Owns whether the ports that the settings name are free, and whether UDP is let through on this machine. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import net from 'node:net'
import type { Config } from '../../app/config.ts'
import { reasonOf } from '../../app/told-failure.ts'
import { familyOf, isWildcard, loopbackOf } from '../../net/addresses.ts'
import { bad, well, type Check, type Looked } from './finding.ts'

const udpWithin = 2_000

export const portChecks = ({ host, port, sip, media, tls }: Config): readonly Check[] => [
  {
    name: 'port of HTTP',
    expected: 'free, or this service runs there',
    look: () => tcpPort({ host, port, setting: 'PORT', url: `${tls ? 'https' : 'http'}://${urlHostOf(host)}:${port}` }),
  },
  ...(sip
    ? [
        {
          name: 'ports of SIP',
          expected: 'free for UDP and TCP, or this service runs there',
          look: () => sipPorts(sip.address, sip.port, { host, port, tls: tls !== null }),
        },
      ]
    : []),
  { name: 'UDP', expected: 'a packet comes through on this machine', look: () => udpLoop(media.address) },
]

const urlHostOf = (host: string): string => {
  const reached = isWildcard(host) ? loopbackOf(familyOf(host)) : host
  return reached.includes(':') ? `[${reached}]` : reached
}

type Place = { readonly host: string; readonly port: number; readonly setting: string; readonly url: string }

async function tcpPort({ host, port, setting, url }: Place): Promise<Looked> {
  if (port === 0) return well('any that is free')
  const refused = await listenError(host, port)
  if (refused === null) return well(`${host}:${port} is free`)
  if (await isParley(url)) return well(`this service runs at ${url}`)
  return bad(`${host}:${port}: ${reasonOf(refused)}`, `Stop who has it, or set ${setting} to another one.`)
}

async function sipPorts(
  address: string,
  port: number,
  http: { host: string; port: number; tls: boolean },
): Promise<Looked> {
  if (port === 0) return well('any that is free')
  const [tcp, udp] = await Promise.all([listenError(address, port), bindError(address, port)])
  const refused = tcp ?? udp
  if (refused === null) return well(`${address}:${port} is free for UDP and TCP`)
  if (await isParley(`${http.tls ? 'https' : 'http'}://${urlHostOf(http.host)}:${http.port}`))
    return well('this service has them')
  return bad(
    `${address}:${port} (${tcp ? 'TCP' : 'UDP'}): ${reasonOf(refused)}`,
    'Stop who has it, or set SIP_PORT to another one; SIP=off goes without telephones.',
  )
}

async function listenError(host: string, port: number): Promise<unknown> {
  const server = net.createServer()
  try {
    await once(server.listen(port, host), 'listening')
    return null
  } catch (error) {
    return error
  } finally {
    server.close()
  }
}

async function bound(address: string, port: number): Promise<Socket> {
  const socket = createSocket(familyOf(address) === 6 ? 'udp6' : 'udp4')
  try {
    const listening = once(socket, 'listening')
    socket.bind(port, address)
    await listening
    return socket
  } catch (error) {
    socket.close()
    throw error
  }
}

const bindError = (address: string, port: number): Promise<unknown> =>
  bound(address, port).then(
    (socket) => (socket.close(), null),
    (error: unknown) => error,
  )

/** From one socket to another one, over the address that sound is bound to. */
async function udpLoop(address: string): Promise<Looked> {
  const host = isWildcard(address) ? loopbackOf(familyOf(address)) : address
  let sockets: readonly Socket[] = []
  try {
    sockets = await Promise.all([bound(host, 0), bound(host, 0)])
    const [from, to] = sockets as readonly [Socket, Socket]
    const came = once(to, 'message', { signal: AbortSignal.timeout(udpWithin) })
    from.send('parley', to.address().port, host)
    await came
    return well(`over ${host}`)
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError')
      return bad(
        `nothing came over ${host}`,
        'A firewall on this machine keeps UDP away: sound needs it. Let MEDIA_PORTS through.',
      )
    return bad(`${host}: ${reasonOf(error)}`, 'Set MEDIA_ADDRESS to an address of this machine.')
  } finally {
    for (const socket of sockets) socket.close()
  }
}

/** Its own certificate is believed by nobody under an address. */
async function isParley(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/health`, { signal: AbortSignal.timeout(udpWithin) })
    return answer.ok && /"status":"ok"/.test(await answer.text())
  } catch {
    // Nobody, or somebody else.
    return false
  }
}
