/** Owns the examination of the machine that the service is to run on, with the settings it would start with. It changes nothing. */
import { X509Certificate } from 'node:crypto'
import { access, constants, readFile, stat, statfs } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import process from 'node:process'
import type { Config } from '../../app/config.ts'
import { openFilesLimit } from '../../app/descriptors.ts'
import { reasonOf, withoutSecrets } from '../../app/told-failure.ts'
import { isLoopback, isWildcard } from '../../net/addresses.ts'
import { hasCluster } from '../../store/postgres-cluster.ts'
import { connect } from '../../store/sql.ts'
import { bad, doubtful, leftOut, well, type Check, type Looked } from './finding.ts'
import { portChecks } from './port-checks.ts'

const megabyte = 2 ** 20
const dayMs = 86_400_000
const wantedNode = 24
const wantedGlibc = [2, 38] as const

export const machineChecks = (config: Config): readonly Check[] => [
  { name: 'node', expected: `node ${wantedNode} or newer`, look: node },
  { name: 'glibc', expected: 'glibc 2.38 or newer, for the fast listener', look: glibc },
  { name: 'memory', expected: 'a gigabyte, 300 MB of it free', look: memory },
  { name: 'open files', expected: '4,096 or more', look: openFiles },
  { name: 'data folder', expected: 'a folder that this user may write', look: () => dataFolder(config) },
  { name: 'disk', expected: '2 GB free beside what recordings leave', look: () => disk(config) },
  ...portChecks(config),
  { name: 'public address', expected: 'an address that callers reach', look: () => publicAddress(config) },
  { name: 'TLS', expected: 'a certificate that is good for two weeks', look: () => certificate(config) },
  { name: 'database', expected: 'it answers, and its clock is this one', look: () => database(config) },
  { name: 'clock', expected: 'set by a time server', look: clock },
]

function node(): Looked {
  const major = Number(process.versions.node.split('.')[0])
  return major >= wantedNode
    ? well(`node ${process.versions.node}`)
    : bad(`node ${process.versions.node}`, 'Start it by npm (npm start, npm run …), which brings the right node along.')
}

/** What the process was linked to at run time; absent on systems with another C library. */
function glibc(): Looked {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } }
  const version = header.glibcVersionRuntime
  if (version === undefined) return doubtful('no glibc here', 'HTTP_DRIVER=uws cannot be used; node listens by itself.')
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isNew = major > wantedGlibc[0] || (major === wantedGlibc[0] && minor >= wantedGlibc[1])
  const mend =
    'Leave HTTP_DRIVER at auto or node; for uws take Debian 13, Ubuntu 24.04 or the image (docs/production-image.md).'
  return isNew ? well(`glibc ${version}`) : doubtful(`glibc ${version}`, mend)
}

async function memory(): Promise<Looked> {
  const meminfo = await readFile('/proc/meminfo', 'utf8').catch(() => '')
  const [, kilobytes] = /^MemAvailable:\s+(\d+)/m.exec(meminfo) ?? []
  const free = (kilobytes === undefined ? os.freemem() : Number(kilobytes) * 1024) / megabyte
  const got = `${Math.round(free)} MB free of ${Math.round(os.totalmem() / megabyte)} MB`
  const mend =
    'The service takes about 300 MB, its embedded voices and database included. Stop something, or take a larger machine.'
  if (free < 150) return bad(got, mend)
  return free < 300 || os.totalmem() < 900 * megabyte ? doubtful(got, mend) : well(got)
}

function openFiles(): Looked {
  const limit = openFilesLimit()
  if (limit === null) return leftOut('this system does not tell')
  const mend = 'Raise it: ulimit -n, LimitNOFILE of systemd, --ulimit nofile of Docker. Connections get half of it.'
  if (limit < 1_024) return bad(`${limit}`, mend)
  return limit < 4_096 ? doubtful(`${limit}`, mend) : well(`${limit}`)
}

/** The folder, or the nearest one above it that is there. */
async function nearestFolder(folder: string): Promise<string> {
  const isThere = await access(folder).then(
    () => true,
    () => false,
  )
  return isThere || path.dirname(folder) === folder ? folder : nearestFolder(path.dirname(folder))
}

async function dataFolder({ dataDir }: Config): Promise<Looked> {
  const folder = path.resolve(dataDir)
  const nearest = await nearestFolder(folder)
  if (!(await stat(nearest)).isDirectory()) return bad(`${nearest} is a file`, 'Name a folder by DATA_DIR.')
  try {
    await access(nearest, constants.W_OK | constants.X_OK)
  } catch (error) {
    return bad(
      `${nearest}: ${reasonOf(error)}`,
      'Give it to the user that runs the service, or name another one by DATA_DIR.',
    )
  }
  return well(nearest === folder ? `${folder} is there` : `${folder} can be made`)
}

async function disk({ dataDir, recordingReserve }: Config): Promise<Looked> {
  const folder = await nearestFolder(path.resolve(dataDir))
  const { bavail, bsize } = await statfs(folder)
  const free = Math.round((bavail * bsize) / megabyte)
  const got = `${free} MB free in ${folder}`
  const reserve = Math.round(recordingReserve / megabyte)
  const mend = `Make room, or name a larger disk by DATA_DIR: recordings stop below ${reserve} MB (RECORDING_RESERVE_MB).`
  if (free < reserve) return bad(got, mend)
  return free < reserve + 2_048 ? doubtful(got, mend) : well(got)
}

const privateRanges =
  /^(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|169\.254\.|f[cd]|fe80:)/i

function publicAddress({ host, media, demo }: Config): Looked {
  const own = Object.values(os.networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal }) => !internal)
    .map(({ address }) => address)
  if (media.publicAddress !== null) return well(`${media.publicAddress}, as MEDIA_PUBLIC_ADDRESS says`)
  if (demo || host === 'localhost' || isLoopback(host))
    return leftOut('only this machine can call: HOST is a loopback address')
  const told = isWildcard(media.address) ? own : [media.address]
  const known = told.filter((address) => !privateRanges.test(address))
  if (known.length > 0) return well(known.join(', '))
  return doubtful(
    `${told.join(', ') || 'none'}: private, so behind a NAT`,
    'Set MEDIA_PUBLIC_ADDRESS to the address that the NAT has outside, and pass MEDIA_PORTS, SIP_MEDIA_PORTS and SIP_PORT on to this machine.',
  )
}

function certificate({ tls, publicUrl }: Config): Looked {
  if (tls === null) return leftOut('none: TLS_CERT is not set, a proxy or nobody has it')
  const read = new X509Certificate(tls.cert)
  const days = Math.floor((read.validToDate.getTime() - Date.now()) / dayMs)
  const mend = 'Renew the files of TLS_CERT and TLS_KEY, and restart.'
  if (days < 0) return bad(`expired ${-days} days ago`, mend)
  const host = publicUrl === null ? null : new URL(publicUrl).hostname
  if (host !== null && !read.checkHost(host))
    return bad(`is not for ${host}`, `Get one that names ${host}, the host of PUBLIC_URL.`)
  return days < 14 ? doubtful(`${days} days left`, mend) : well(`${days} days left`)
}

async function database({ databaseUrl, dataDir }: Config): Promise<Looked> {
  if (databaseUrl === null)
    return well((await hasCluster(dataDir)) ? 'embedded, and there already' : 'embedded, to be made at the first start')
  const sql = connect({ server: { url: databaseUrl }, applicationName: 'parley doctor', maxConnections: 1 })
  try {
    const before = Date.now()
    const [row] = await sql<
      { now: Date; version: number }[]
    >`select clock_timestamp() as now, current_setting('server_version_num')::int as version`
    const drift = Math.round((row?.now.getTime() ?? before) - (before + Date.now()) / 2)
    if (row && row.version < 150_000) return bad(`PostgreSQL ${row.version / 10_000}`, 'Take PostgreSQL 15 or newer.')
    const got = `it answers; its clock is ${Math.abs(drift)} ms ${drift < 0 ? 'behind' : 'ahead'}`
    const mend = 'Let both machines be set by a time server: waits, retries and tokens are counted by these clocks.'
    if (Math.abs(drift) > 30_000) return bad(got, mend)
    return Math.abs(drift) > 2_000 ? doubtful(got, mend) : well(got)
  } catch (error) {
    return bad(`${withoutSecrets(databaseUrl)}: ${reasonOf(error)}`, 'Mend DATABASE_URL, or the server that it names.')
  } finally {
    await sql.end({ timeout: 0 })
  }
}

/** systemd says by this file that its time server has set the clock; of others nothing is known without asking them. */
async function clock(): Promise<Looked> {
  const isSet = await access('/run/systemd/timesync/synchronized').then(
    () => true,
    () => false,
  )
  return isSet
    ? well('set by a time server')
    : leftOut('not known: no systemd-timesyncd here. The database and a deployment are compared with it')
}
