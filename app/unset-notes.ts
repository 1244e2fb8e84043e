/**
 * Owns what an operator is told about settings, at the start and in the console: what matters and is not set or makes things less safe, in words that say what
 * follows and what mends it. Pure.
 */
import { isLoopback, isWildcard } from '../net/addresses.ts'
import type { Config } from './config.ts'

type Told = Pick<
  Config,
  'host' | 'publicUrl' | 'tls' | 'media' | 'sip' | 'email' | 'databaseUrl' | 'demo' | 'appSecret' | 'dataDir'
>

/** One sentence each; those that keep calls away first. `foreignSecrets`: those stored that no key of this process opens. */
export const notesOf = (config: Told, { foreignSecrets = 0 } = {}): readonly string[] => [
  ...(foreignSecrets > 0 ? [noteOfSecrets(config, foreignSecrets)] : []),
  ...notesOfSettings(config),
]

const noteOfSecrets = ({ appSecret, dataDir }: Told, count: number): string => {
  const which = `${count === 1 ? '1 stored secret' : `${count} stored secrets`} of trunks and webhooks`
  return appSecret === null
    ? `${which} cannot be opened by the key in ${dataDir}/app.key: bring back the file of before, or set APP_SECRET to what they were sealed with (docs/settings.md).`
    : `APP_SECRET opens none of ${which}: set APP_SECRET=<this one>,<the one of before>, or give those passwords anew (docs/settings.md).`
}

function notesOfSettings(config: Told): readonly string[] {
  const { host, publicUrl, tls, media, sip, email, databaseUrl } = config
  if (config.demo)
    return [
      'Only this machine can call: HOST is a loopback address. For others set HOST, DATABASE_URL and PUBLIC_URL (docs/operations.md).',
    ]
  const isOpen = host !== 'localhost' && !isLoopback(host)
  const isAnyAddress = isWildcard(media.address)
  return [
    ...(publicUrl === null && isOpen
      ? [
          'PUBLIC_URL is not set: links, OAuth and cookies take the host that a request names. Set it to the https:// address that people use.',
        ]
      : []),
    ...(tls === null && publicUrl === null && isOpen
      ? [
          'No TLS: browsers give a microphone to https pages only. Set TLS_CERT and TLS_KEY, or put a proxy before it and set PUBLIC_URL.',
        ]
      : []),
    ...(media.publicAddress === null && (isOpen || publicUrl !== null)
      ? [
          `MEDIA_PUBLIC_ADDRESS is not set: behind a NAT browsers${sip ? ' and carriers' : ''} from elsewhere get no sound${isAnyAddress ? '' : ` by ${media.address}`}. Set it to the public address of this machine, if it has one of its own none is needed.`,
        ]
      : []),
    ...(databaseUrl === null && isOpen
      ? ['DATABASE_URL is not set: the embedded database is for one machine. docs/backup.md tells how it is kept.']
      : []),
    ...(email === null
      ? [
          'SMTP_URL and EMAIL_FROM are not set: agents send no mail. Set both, or take the e-mail tools out of their scripts.',
        ]
      : []),
    ...notesOfSafety(config),
  ]
}

/** What somebody has switched off, and then maybe forgotten. */
const notesOfSafety = ({ publicUrl, email, sip }: Told): readonly string[] => [
  ...(publicUrl?.startsWith('http:') && !isLoopback(new URL(publicUrl).hostname)
    ? [
        'PUBLIC_URL begins with http://: passwords, keys and cookies go over the network in clear, and browsers give no microphone. Make it an https:// address.',
      ]
    : []),
  ...(email && !email.requireTls && email.smtpUrl.startsWith('smtp:')
    ? ['SMTP_REQUIRE_TLS is off: mail of agents goes in clear where the mail server offers no TLS. Set it to on.']
    : []),
  ...(sip && !sip.tlsClient.verify
    ? ['SIP_TLS_VERIFY is off: whoever answers in place of a carrier gets its calls. Set it to on, with SIP_TLS_CA.']
    : []),
]
