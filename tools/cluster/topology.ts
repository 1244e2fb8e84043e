/** Owns which processes a cluster is made of, and what each is told: names, roles, ports and settings. Pure. */
import path from 'node:path'

export type Roles = 'actors' | 'gateway' | 'sip' | 'api,mcp' | 'gateway,sip,actors,api,mcp'

/** How many of each. `whole`: processes that have every role. */
export type Counts = {
  readonly actors: number
  readonly gateways: number
  readonly sip: number
  readonly api: number
  readonly whole: number
  /** Of NATS servers: 1 or 3. */
  readonly nats: number
}

export type ProcessSpec = {
  /** `sip-1`. */
  readonly name: string
  readonly roles: Roles
  readonly port: number
  /** Of UDP and TCP; null: no telephone edge. */
  readonly sipPort: number | null
  readonly folder: string
  readonly env: Readonly<Record<string, string>>
}

/** Every process has these. */
export type Shared = {
  readonly databaseUrl: string
  readonly natsUrl: string
  readonly appSecret: string
  /** On top of everything, by the name of the process. */
  readonly settings: (name: string) => Readonly<Record<string, string>>
}

const everything = 'gateway,sip,actors,api,mcp'
/** UDP ports of the sound of one process: those of browsers, and as many of telephones. */
const portsOfSound = 400
const firstWebPort = 40_000
const firstPhonePort = 30_000

const portsOf = (first: number, index: number): string =>
  `${first + index * portsOfSound}-${first + (index + 1) * portsOfSound - 1}`

/** Two ports for each process and two for each NATS server: its own and that of the others. */
export const portsNeeded = (counts: Counts): number => 1 + 2 * counts.nats + 2 * rolesOf(counts).length

/** In the order in which they are started. */
export function rolesOf({
  actors,
  gateways,
  sip,
  api,
  whole,
}: Counts): { readonly name: string; readonly roles: Roles }[] {
  const named = (count: number, name: string, roles: Roles) =>
    Array.from({ length: count }, (_, index) => ({ name: `${name}-${index + 1}`, roles }))
  return [
    ...named(whole, 'whole', everything),
    ...named(actors, 'actors', 'actors'),
    ...named(api, 'api', 'api,mcp'),
    ...named(gateways, 'gateway', 'gateway'),
    ...named(sip, 'sip', 'sip'),
  ]
}

export function processesOf(counts: Counts, folder: string, firstPort: number, shared: Shared): ProcessSpec[] {
  const parts = rolesOf(counts)
  const gateway = parts.findIndex(({ roles }) => roles.includes('gateway'))
  const signalingUrl = `ws://127.0.0.1:${firstPort + 2 * Math.max(0, gateway)}/v1/signaling`
  return parts.map(({ name, roles }, index) => {
    const port = firstPort + 2 * index
    const sipPort = roles.includes('sip') ? port + 1 : null
    const ownFolder = path.join(folder, name)
    const env = {
      ROLES: roles,
      HOST: '127.0.0.1',
      PORT: String(port),
      DATA_DIR: ownFolder,
      DATABASE_URL: shared.databaseUrl,
      NATS_URL: shared.natsUrl,
      APP_SECRET: shared.appSecret,
      SIP: sipPort === null ? 'off' : 'on',
      ...(sipPort !== null && { SIP_PORT: String(sipPort), SIP_ALLOW_HOSTS: '127.0.0.1' }),
      // Of one of them: a proxy before all has an address of its own.
      ...(!roles.includes('gateway') && { SIGNALING_URL: signalingUrl }),
      MEDIA_ADDRESS: '127.0.0.1',
      MEDIA_PORTS: portsOf(firstWebPort, index),
      SIP_MEDIA_PORTS: portsOf(firstPhonePort, index),
      SELF_TEST: 'off',
      WEBHOOK_ALLOW_HOSTS: '127.0.0.1',
      ...shared.settings(name),
    }
    return { name, roles, port, sipPort, folder: ownFolder, env }
  })
}

/** A command line each. Three know each other by their second ports. */
export function natsServersOf(
  count: number,
  firstPort: number,
): { readonly url: string; readonly args: readonly string[] }[] {
  const ports = Array.from({ length: count }, (_, index) => [firstPort + 2 * index, firstPort + 2 * index + 1] as const)
  const routes = ports.map(([, inner]) => `nats://127.0.0.1:${inner}`)
  return ports.map(([port, inner]) => {
    const own = ['-a', '127.0.0.1', '-p', String(port)]
    const among = ['--cluster_name', 'parley', '--cluster', `nats://127.0.0.1:${inner}`, '--routes', routes.join(',')]
    return { url: `nats://127.0.0.1:${port}`, args: count === 1 ? own : [...own, ...among] }
  })
}
