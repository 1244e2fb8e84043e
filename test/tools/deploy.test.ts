/**
 * docker-compose.yml and the manifests for Kubernetes, checked without either: they parse, and every setting, port, secret, health check and file
 * they name is one of the service's, of the Dockerfile's or of their own. No engine was at hand, so this is all that is known of them.
 */
import { execFile } from 'node:child_process'
import { cp, readFile, readdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { readConfig, settingNames } from '../../app/config.ts'
import { createFolder } from '../scenes/folder.ts'

const run = promisify(execFile)
const root = path.resolve(import.meta.dirname, '../..')
const read = (file: string): Promise<string> => readFile(path.join(root, file), 'utf8')

type Json = Readonly<Record<string, unknown>>
type Service = {
  readonly image: string
  readonly network_mode?: string
  readonly environment?: Readonly<Record<string, string>>
  readonly secrets?: readonly string[]
  readonly configs?: readonly { readonly source: string }[]
  readonly volumes?: readonly string[]
  readonly ports?: readonly string[]
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly healthcheck?: { readonly test: readonly string[] }
  readonly stop_grace_period?: string
  readonly command?: readonly string[]
  readonly restart?: string
}
type Compose = {
  readonly services: Readonly<Record<string, Service>>
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
  readonly configs: Readonly<Record<string, { readonly file: string }>>
  readonly volumes: Json
}

const given = { PUBLIC_HOST: 'calls.example.com', HOST_ADDRESS: '192.0.2.10', PUBLIC_ADDRESS: '203.0.113.7' }
/** `${NAME}`, `${NAME:-usual}` and `${NAME:?why}`, as compose replaces them; `$$` is a dollar for the shell in the container. */
const filledIn = (text: string, values: Readonly<Record<string, string>>): string =>
  text.replace(/\$\$|\$\{(\w+)(?::([-?])([^}]*))?\}/g, (all, name: string, kind: string, rest = '') => {
    if (all === '$$') return '$$'
    const value = values[name]
    if (value !== undefined) return value
    if (kind !== '-') throw new Error(`${name} has neither value nor default`)
    return rest
  })

const readCompose = async (values: Readonly<Record<string, string>> = given): Promise<Compose> =>
  parse(filledIn(await read('docker-compose.yml'), values), { merge: true }) as Compose

/** What the service is made of here: `<<: [a, b]` of YAML 1.1 is read by the parser as by compose. */
const ofService = ({ services }: Compose): [string, Service][] =>
  Object.entries(services).filter(([, { environment }]) => environment?.['ROLES'] !== undefined)

test('compose starts two of each kind that carries calls, one for REST, and what they stand on', async (t) => {
  const compose = await readCompose()
  const names = ofService(compose).map(([name]) => name)
  t.same(names, ['actors-1', 'actors-2', 'api', 'gateway-1', 'gateway-2', 'sip-1', 'sip-2'])
  const others = Object.keys(compose.services).filter((name) => !names.includes(name))
  const standsOn = [
    'drachtio',
    'postgres',
    'nats',
    'nats-2',
    'nats-3',
    'storage',
    'storage-bucket',
    'coturn',
    'proxy',
    'prometheus',
  ]
  t.same(others, standsOn)
  for (const [name, { healthcheck, restart }] of Object.entries(compose.services)) {
    t.ok(restart, `${name} comes back`)
    const isLooked = names.includes(name) || name === 'storage-bucket' || healthcheck !== undefined
    t.ok(isLooked, `${name} has a health check, the service that of its image`)
  }
})

test('each process of compose has settings that the service takes, secrets as files only, and ports that nobody else has', async (t) => {
  const compose = await readCompose()
  const [taken, sound] = [new Map<string, string>(), [] as (readonly [number, number])[]]
  const secretsFolder = await createFolder(t)
  await makeSecrets(secretsFolder)
  for (const [name, service] of ofService(compose)) {
    const environment = { ...imageSettings(await read('Dockerfile')), ...service.environment }
    for (const [setting, value] of Object.entries(environment)) {
      const isFile = setting.endsWith('_FILE')
      t.ok(settingNames.includes(setting.replace(/_FILE$/, '')), `${name}: ${setting} is a setting`)
      if (!isFile)
        t.notMatch(setting, /SECRET|PASSWORD|KEY|^DATABASE_URL$|^DRACHTIO_URL$/, `${name}: ${setting} is a file`)
      const secret = /^\/run\/secrets\/(\w+)$/.exec(value)?.[1]
      if (isFile)
        t.ok(secret && service.secrets?.includes(secret) && compose.secrets[secret], `${name}: ${value} is handed over`)
    }
    const files = Object.entries(environment).map(([setting, value]) => [
      setting,
      value.replace('/run/secrets', path.join(secretsFolder, 'secrets')),
    ])
    const config = readConfig(Object.fromEntries(files) as Record<string, string>)
    t.match(config, { publicUrl: 'https://calls.example.com', demo: false })
    t.ok(config.appSecret && config.databaseUrl?.includes('@postgres:5432/parley') && config.recordingsBucket)
    t.ok(
      config.drainTimeout + config.shutdownGrace < 60_000 * Number.parseInt(service.stop_grace_period ?? '0'),
      `${name} may drain`,
    )
    if (service.network_mode !== 'host') continue
    t.notOk(taken.has(String(config.port)), `${name}: port ${config.port}`)
    taken.set(String(config.port), name)
    if (environment['ROLES'] === 'gateway') sound.push(config.media.ports)
    if (config.sip) sound.push(config.sip.mediaPorts)
  }
  const sorted = sound.toSorted(([a], [b]) => a - b)
  for (const [index, [from]] of sorted.entries())
    t.ok(from > (sorted[index - 1]?.[1] ?? 0), `${from} and on are its own`)
})

test('everything that compose names is there: secrets, files, volumes, what is waited for, what the proxy passes on to', async (t) => {
  const compose = await readCompose()
  const folder = await createFolder(t)
  await makeSecrets(folder)
  const made = await readdir(path.join(folder, 'secrets'))
  for (const { file } of Object.values(compose.secrets)) t.ok(made.includes(path.basename(file)), file)
  t.same(made.toSorted(), Object.keys(compose.secrets).toSorted(), 'and no secret is made for nobody')
  for (const { file } of Object.values(compose.configs)) t.ok((await stat(path.join(root, file))).isFile(), file)
  for (const [name, { volumes = [], configs = [], secrets = [], depends_on = {} }] of Object.entries(
    compose.services,
  )) {
    for (const volume of volumes) t.ok((volume.split(':')[0] ?? '') in compose.volumes, `${name}: ${volume}`)
    for (const { source } of configs) t.ok(source in compose.configs, `${name}: ${source}`)
    for (const secret of secrets) t.ok(secret in compose.secrets, `${name}: ${secret}`)
    for (const [other, { condition }] of Object.entries(depends_on)) {
      t.equal(condition, 'service_healthy')
      t.ok(compose.services[other]?.healthcheck, `${name} waits for ${other}, which says when it is healthy`)
    }
  }
  const proxied = [...(await read('deploy/compose/Caddyfile')).matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port]) => port)
  const looked = [...(await read('deploy/compose/Caddyfile')).matchAll(/health_uri (\S+)/g)].map(([, asking]) => asking)
  t.same(looked, ['/ready', '/ready'])
  const routes = await Promise.all(['health', 'ready'].map((name) => read(`api/${name}-route.ts`)))
  for (const [index, asking] of ['/health', '/ready'].entries())
    t.ok(routes[index]?.includes(`path: '${asking}'`), asking)
  const served = ['gateway-1', 'gateway-2'].map((name) => compose.services[name]?.environment?.['PORT'])
  t.same(proxied, [...served, '8080'])
  t.same(compose.services['api']?.ports, ['127.0.0.1:8080:8080'])
  for (const [name, { ports = [] }] of Object.entries(compose.services))
    for (const port of ports) t.match(port, /^127\.0\.0\.1:/, `${name} is published on loopback`)
})

test('secrets are made once, for this user alone, and fit together; a second run changes nothing', async (t) => {
  const folder = await createFolder(t)
  await makeSecrets(folder)
  const secrets = path.join(folder, 'secrets')
  t.equal((await stat(secrets)).mode & 0o077, 0)
  const contents = async () =>
    Object.fromEntries(
      await Promise.all(
        (await readdir(secrets)).map(async (name) => [name, await readFile(path.join(secrets, name), 'utf8')] as const),
      ),
    )
  const first = await contents()
  await makeSecrets(folder)
  t.same(await contents(), first)
  t.ok(first['database_url']?.includes(`:${first['database_password']}@`))
  t.ok(first['drachtio_url']?.includes(`:${first['drachtio_secret']}@`))
  const [identity] = (JSON.parse(first['storage_keys'] ?? '') as { identities: Json[] }).identities
  const credentials = [
    { accessKey: first['recordings_access_key_id'], secretKey: first['recordings_secret_access_key'] },
  ]
  t.same(identity?.['credentials'], credentials)
})

test('the variables of compose are those of its example, and three NATS servers are one setting away', async (t) => {
  const text = await read('docker-compose.yml')
  const own = new Set([...text.matchAll(/(?<!\$)\$\{(\w+)/g)].map(([, name = '']) => name))
  const example = await read('deploy/compose/example.env')
  const told = [...example.matchAll(/^#?([A-Z_]+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value] as const)
  t.same(
    told.map(([name]) => name).filter((name) => name !== 'COMPOSE_PROFILES'),
    told.map(([name]) => name).filter((name) => own.has(name)),
  )
  for (const name of own)
    t.ok(
      told.some(([other]) => other === name),
      name,
    )
  const compose = await readCompose(Object.fromEntries(told))
  for (const server of String(compose.services['api']?.environment?.['NATS_URL']).split(',')) {
    const { hostname, port } = new URL(server)
    const nats = compose.services[hostname]
    t.ok(nats?.command?.join(' ').includes(`--port ${port} `), server)
    t.same(nats?.ports, [`127.0.0.1:${port}:${port}`])
  }
})

test('what is in the image is the product: node 24 on Debian 13, and none of the secrets beside it', async (t) => {
  const dockerfile = await read('Dockerfile')
  t.match(dockerfile, /^ARG BASE=node:24\.[\d.]+-trixie-slim$/m)
  const ignored = (await read('.dockerignore')).split('\n')
  for (const entry of ['.env', '.git', 'deploy', 'docker-compose.yml', 'test']) t.ok(ignored.includes(entry), entry)
  t.ok((await read('.gitignore')).split('\n').includes('deploy/*/secrets/'))
  const [command = ''] = /^CMD .*$/m.exec(dockerfile) ?? []
  const words = JSON.parse(command.slice('CMD '.length)) as string[]
  t.ok((await stat(path.join(root, words.at(-1) ?? ''))).isFile(), 'what it runs exists')
})

type Manifest = { readonly kind: string; readonly metadata: { readonly name: string }; readonly spec: Json }
type Container = {
  readonly image: string
  readonly env?: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: Json }[]
  readonly ports: readonly { readonly containerPort: number; readonly hostPort?: number; readonly protocol?: string }[]
  readonly [probe: string]: unknown
}
type Pod = {
  readonly terminationGracePeriodSeconds: number
  readonly enableServiceLinks: boolean
  readonly hostNetwork?: boolean
  readonly containers: readonly Container[]
  readonly volumes: readonly { readonly name: string; readonly secret?: { readonly secretName: string } }[]
}
const kubernetes = 'deploy/kubernetes'

async function readManifests() {
  const kustomization = parse(await read(`${kubernetes}/kustomization.yaml`)) as {
    readonly resources: readonly string[]
    readonly images: readonly { readonly name: string }[]
    readonly configMapGenerator: readonly { readonly name: string; readonly envs: readonly string[] }[]
    readonly secretGenerator: readonly { readonly name: string; readonly files: readonly string[] }[]
  }
  const texts = await Promise.all(kustomization.resources.map((file) => read(`${kubernetes}/${file}`)))
  const documents = texts.flatMap((text) => parseAllDocuments(text))
  const manifests = documents.map((document) => document.toJS() as Manifest)
  return { kustomization, errors: documents.flatMap(({ errors }) => errors), manifests }
}

const podOf = (manifest: Manifest): Pod => (manifest.spec['template'] as { readonly spec: Pod }).spec

test('kustomize finds every file, and each process of Kubernetes has settings that the service takes', async (t) => {
  const { kustomization, errors, manifests } = await readManifests()
  t.same(errors, [])
  const files = (await readdir(path.join(root, kubernetes))).filter((file) => file.endsWith('.yaml'))
  t.same([...kustomization.resources, 'kustomization.yaml'].toSorted(), files.toSorted(), 'none is left out')
  const shared = Object.fromEntries(
    (await read(`${kubernetes}/settings.env`))
      .trim()
      .split('\n')
      .map((line) => line.split(/=(.*)/s).slice(0, 2)),
  ) as Record<string, string>
  const secrets = kustomization.secretGenerator.flatMap(({ files: of }) => of.map((file) => path.basename(file)))
  const ours = manifests.filter(
    (one) => ['Deployment', 'StatefulSet'].includes(one.kind) && one.metadata.name !== 'nats',
  )
  t.same(ours.map(({ metadata }) => metadata.name).toSorted(), ['actors', 'api', 'gateway', 'sip'])
  const folder = await createFolder(t)
  await makeSecrets(folder)
  for (const one of ours) {
    const { name } = one.metadata
    const pod = podOf(one)
    const [container] = pod.containers as [Container]
    const own = (container.env ?? []).map(({ name: setting, value }) => [setting, value ?? '192.0.2.10'] as const)
    const environment = { ...imageSettings(await read('Dockerfile')), ...shared, ...Object.fromEntries(own) }
    for (const setting of Object.keys(environment))
      t.ok(settingNames.includes(setting.replace(/_FILE$/, '')), `${name}: ${setting} is a setting`)
    for (const [setting, file] of Object.entries(environment).filter(([setting]) => setting.endsWith('_FILE')))
      t.ok(secrets.includes(path.basename(file)), `${name}: ${setting} is a secret`)
    const withFiles = Object.entries(environment).map(([setting, value]) => [
      setting,
      value.replace('/run/secrets/parley', path.join(folder, 'secrets')),
    ])
    const config = readConfig(Object.fromEntries(withFiles) as Record<string, string>)
    t.equal(pod.enableServiceLinks, false, 'no variable comes from the name of a Service')
    t.ok(
      pod.terminationGracePeriodSeconds * 1000 > config.drainTimeout + config.shutdownGrace + 10_000,
      `${name} may drain`,
    )
    for (const probe of ['livenessProbe', 'readinessProbe', 'startupProbe']) {
      const { httpGet, tcpSocket } = container[probe] as Record<string, { path?: string; port: number } | undefined>
      t.equal((httpGet ?? tcpSocket)?.port, config.port, `${name}: ${probe}`)
    }
    const asked = [...JSON.stringify(container).matchAll(/"path":"(\/\w+)"/g)].map(([, asking = '']) => asking)
    t.same(asked, ['/ready', '/health'], `${name}: new calls where it is ready, and none before it is up`)
    t.ok(container.ports.some(({ containerPort }) => containerPort === config.port))
    t.equal(config.sip !== null, name === 'sip')
    if (config.sip) t.ok(pod.hostNetwork)
    const udp = container.ports.filter(({ protocol }) => protocol === 'UDP')
    const [from, to] = config.media.ports
    if (name === 'gateway') {
      const wanted = Array.from({ length: to - from + 1 }, (_, index) => from + index)
      t.same(
        udp.map(({ hostPort }) => hostPort),
        wanted,
        'the sound has its ports on the node',
      )
      t.ok(config.mediaThreads < wanted.length, 'one for each thread')
    }
  }
})

test('what browsers ask a gateway for comes to one: its page, the client and the socket; the rest to REST', async (t) => {
  const own = [...(await read('gateway/page.ts')).matchAll(/\bpath: '([^']+)',\s+files/g)].map(([, at = '']) => at)
  const modules = (await readdir(path.join(root, 'sdk'))).filter((name) => name.endsWith('.js'))
  const wanted = [...own, ...modules.flatMap((name) => [`/${name}`, `/sdk/${name}`]), '/v1/signaling']
  t.ok(own.length >= 3 && modules.length > 3)
  const [, matched = ''] = /@calls path (.+)/.exec(await read('deploy/compose/Caddyfile')) ?? []
  const globs = matched.split(' ')
  const fits = (glob: string, at: string) => new RegExp(`^${glob.split('*').map(RegExp.escape).join('.*')}$`).test(at)
  const missed = (rules: readonly string[], fit: typeof fits) => ({
    paths: wanted.filter((at) => !rules.some((rule) => fit(rule, at))),
    rules: rules.filter((rule) => !wanted.some((at) => fit(rule, at))),
  })
  t.same(missed(globs, fits), { paths: [], rules: [] }, 'Caddyfile')
  const ingress = parse(await read(`${kubernetes}/ingress.yaml`)) as { spec: { rules: { http: { paths: Json[] } }[] } }
  const [rule] = ingress.spec.rules
  const to = (name: string) => rule?.http.paths.filter(({ backend }) => JSON.stringify(backend).includes(`"${name}"`))
  const prefixes = new Set(
    to('gateway')
      ?.filter((one) => one['pathType'] === 'Prefix')
      .map((one) => String(one['path'])),
  )
  const paths = to('gateway')?.map((one) => String(one['path'])) ?? []
  const isUnder = (rule: string, at: string) => at === rule || (prefixes.has(rule) && at.startsWith(`${rule}/`))
  t.same(missed(paths, isUnder), { paths: [], rules: [] }, 'ingress.yaml')
  t.match(to('api'), [{ path: '/', pathType: 'Prefix' }])
})

test('whatever carries calls is drained and never all of it at once', async (t) => {
  const { manifests } = await readManifests()
  const of = (kind: string) => manifests.filter((one) => one.kind === kind)
  for (const name of ['actors', 'api', 'gateway', 'sip', 'nats']) {
    const budget = of('PodDisruptionBudget').find(({ metadata }) => metadata.name === name)
    const workload = manifests.find(
      (one) => ['Deployment', 'StatefulSet'].includes(one.kind) && one.metadata.name === name,
    )
    t.match(budget?.spec, { maxUnavailable: 1, selector: { matchLabels: { app: name } } })
    t.match(workload?.spec, {
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } } },
    })
    t.ok(Number(workload?.spec['replicas']) >= 2, name)
    if (name !== 'nats')
      t.match(podOf(workload!).containers[0]?.['lifecycle'], { preStop: { exec: { command: ['sleep', '5'] } } })
    const service = of('Service').find(({ metadata }) => metadata.name === name)
    t.match(service?.spec, { selector: { app: name } })
  }
  const services = new Map(of('Service').map(({ metadata, spec }) => [metadata.name, JSON.stringify(spec)]))
  const backends = JSON.stringify(of('Ingress')).matchAll(/"service":\{"name":"(\w+)","port":\{"name":"(\w+)"\}/g)
  for (const [, name = '', port = ''] of backends)
    t.ok(services.get(name)?.includes(`"name":"${port}"`), `${name} ${port}`)
})

/** The script in a folder of its own: secrets of this checkout are nobody's business. */
async function makeSecrets(folder: string): Promise<void> {
  await cp(path.join(root, 'deploy/compose/make-secrets.sh'), path.join(folder, 'make-secrets.sh'))
  await run('sh', [path.join(folder, 'make-secrets.sh')])
}

/** Settings among the variables that the image sets. */
function imageSettings(dockerfile: string): Record<string, string> {
  const variables = [...dockerfile.matchAll(/\b([A-Z_]+)=([^\s\\]+)/g)].map(([, name = '', value = '']) => [
    name,
    value,
  ])
  const found = Object.fromEntries(variables) as Record<string, string>
  const chosen = Object.entries(found).filter(([name]) => settingNames.includes(name))
  // It loads in the image; whether it does here is another test's.
  return { ...Object.fromEntries(chosen), HTTP_DRIVER: 'node' }
}
