/** Owns the places where a start can fail: how each is named to the operator, by its settings, and what mends it there. */
import type { Config } from './config.ts'
import { told, withoutSecrets, type Mends } from './told-failure.ts'

type Work<Value> = () => Value | Promise<Value>

const mendedAlike = (codes: readonly string[], mend: string): Mends =>
  Object.fromEntries(codes.map((code) => [code, mend]))

const folderMends: Mends = {
  ...mendedAlike(
    ['EACCES', 'EPERM', 'EFOREIGNFOLDER'],
    'give it to the user that starts this (chown -R), or set DATA_DIR to another folder',
  ),
  ...mendedAlike(
    ['EROFS', 'ENOTDIR', 'EEXIST', 'ENOENT', 'ENAMETOOLONG', 'ELOOP'],
    'set DATA_DIR to a folder that this user can make and write',
  ),
  ...mendedAlike(['ENOSPC', 'EDQUOT', '53100'], 'make room there, or set DATA_DIR to a folder on another disk'),
  EPOSTGRESASROOT: 'start the service as another user, or set DATABASE_URL',
  ENOSHAREDMEMORY: 'enlarge it (docker run --shm-size=256m)',
  EOTHERPOSTGRES: 'back it up with the version of the service that made it, and restore that here (docs/backup.md)',
  ENEWERTABLES: 'start that version, or restore a backup that an older one has made (docs/backup.md)',
}

const serverMends: Mends = {
  ...mendedAlike(['ECONNREFUSED', 'CONNECTION_REFUSED'], 'start the server, or mend its host and port'),
  ...mendedAlike(
    ['ETIMEDOUT', 'CONNECT_TIMEOUT', 'EHOSTUNREACH', 'ENETUNREACH'],
    'mend its host and port, or the firewall between',
  ),
  ...mendedAlike(['ENOTFOUND', 'EAI_AGAIN'], 'mend its host'),
  ...mendedAlike(['ECONNRESET', 'CONNECTION_CLOSED'], 'start again when the server runs'),
  ENOTLS: 'leave sslmode out, or switch TLS on there (ssl = on)',
  ...mendedAlike(
    [
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'SELF_SIGNED_CERT_IN_CHAIN',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
      'CERT_HAS_EXPIRED',
      'ERR_TLS_CERT_ALTNAME_INVALID',
    ],
    'mend that, name the authority by NODE_EXTRA_CA_CERTS, or take sslmode=require, which asks for none',
  ),
  '28P01': 'mend it there, where @ : / # ? % are written %40 %3A %2F %23 %3F %25',
  '28000': 'add ?sslmode=require, or let the user in by the pg_hba.conf of the server',
  '3D000': 'make it (createdb), or name another one',
  '42501': 'make the user the owner of the database',
  '53100': 'make room there',
  '53300': 'raise its max_connections: each process of the service takes up to 16',
}

/** Of a server that is not there, or not yet. */
const mayCome = ['ECONNREFUSED', 'CONNECTION_REFUSED', 'ETIMEDOUT', 'ECONNRESET', 'EHOSTUNREACH', 'ENETUNREACH']

const busMends: Mends = {
  ...mendedAlike(mayCome, 'start it, or leave NATS_URL out: one process needs none'),
  ...mendedAlike(['ENOTFOUND', 'EAI_AGAIN'], 'mend its host, or leave NATS_URL out: one process needs none'),
  ENOTLS: 'write nats:// in place of tls://, or give the server a certificate',
  EBUSREFUSED:
    'mend them in it (nats://user:password@host:4222), where @ : / # ? % are written %40 %3A %2F %23 %3F %25',
}

/** Of a port that this process was to listen on. */
const portMends = (address: string, port: string): Mends => ({
  EADDRINUSE: `end what listens there, or set ${port}`,
  ...mendedAlike(['EACCES', 'EPERM'], `ports below 1024 are for root: set ${port}`),
  ...mendedAlike(
    ['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN'],
    `set ${address} to an address of this machine, or to 0.0.0.0 for all it has`,
  ),
})

type Home = Pick<Config, 'databaseUrl' | 'dataDir'>

export const inDataFolder = <Value>({ dataDir }: Pick<Home, 'dataDir'>, work: Work<Value>): Promise<Value> =>
  told(`DATA_DIR: ${dataDir} cannot be used`, work, folderMends)

/** `note`: what else there is to do, by who has another way. */
export const atDatabase = <Value>({ databaseUrl, dataDir }: Home, work: Work<Value>, note = ''): Promise<Value> =>
  databaseUrl === null
    ? told(`DATA_DIR: no database can run in ${dataDir}${note}`, work, folderMends)
    : told(`DATABASE_URL: ${withoutSecrets(databaseUrl)} cannot be used${note}`, work, serverMends)

export const atBus = <Value>(natsUrl: string, work: Work<Value>): Promise<Value> =>
  told(`NATS_URL: no NATS server can be used at ${withoutSecrets(natsUrl)}`, work, busMends)

export const atHttpPort = <Value>({ host, port }: Pick<Config, 'host' | 'port'>, work: Work<Value>): Promise<Value> =>
  told(`HOST, PORT: the service cannot listen on ${host}, port ${port}`, work, portMends('HOST', 'PORT to another one'))

type Sip = Pick<NonNullable<Config['sip']>, 'address' | 'port'>

export const atSipPorts = <Value>({ address, port }: Sip, work: Work<Value>): Promise<Value> =>
  told(
    `SIP_ADDRESS, SIP_PORT, SIP_TLS_PORT: SIP cannot listen on ${address}, port ${port}`,
    work,
    portMends('SIP_ADDRESS', 'SIP_PORT to another one, or SIP=off'),
  )

type Drachtio = NonNullable<NonNullable<Config['sip']>['drachtio']>

export const atDrachtio = <Value>({ host, port }: Pick<Drachtio, 'host' | 'port'>, work: Work<Value>): Promise<Value> =>
  told(`DRACHTIO_URL: no drachtio-server can be used at ${host}:${port}`, work, {
    ...mendedAlike(mayCome, 'start it, or leave DRACHTIO_URL out: the embedded SIP server needs none'),
    ...mendedAlike(['ENOTFOUND', 'EAI_AGAIN'], 'mend its host'),
  })

export const atMediaPorts = <Value>({ address, ports }: Config['media'], work: Work<Value>): Promise<Value> =>
  told(
    `MEDIA_ADDRESS, MEDIA_PORTS: no sound can be taken on ${address}, ports ${ports.join('-')}`,
    work,
    portMends('MEDIA_ADDRESS', 'MEDIA_PORTS to a range that is free'),
  )

export const atMetricsPort = <Value>(
  { host, port }: Pick<Config, 'host' | 'port'>,
  work: Work<Value>,
): Promise<Value> =>
  told(
    `METRICS_HOST, METRICS_PORT: the metrics cannot be served on ${host}, port ${port}`,
    work,
    portMends('METRICS_HOST', 'METRICS_PORT to another one'),
  )
