/** Owns how NATS_URL is read: its servers, and by whom and how they are reached, which the client takes from no address. Pure. */

export type NatsAddress = {
  /** Without what is secret. */
  readonly servers: readonly string[]
  readonly user?: string
  readonly pass?: string
  readonly token?: string
  /** Without it the client takes TLS where the server offers it, and goes on in the clear where it does not. */
  readonly tls?: Readonly<Record<string, never>>
}

/** One or more addresses, separated by commas; the first one that names a user, or a token alone, names it for all. */
export function natsAddressOf(url: string): NatsAddress {
  const servers = url.split(',').map((server) => new URL(server.trim()))
  const { username = '', password = '' } = servers.find((server) => server.username !== '') ?? {}
  return {
    servers: servers.map(({ host }) => host),
    ...(username !== '' && whoIs(decodeURIComponent(username), decodeURIComponent(password))),
    ...(servers.some(({ protocol }) => protocol === 'tls:') && { tls: {} }),
  }
}

const whoIs = (name: string, pass: string): Pick<NatsAddress, 'user' | 'pass' | 'token'> =>
  pass === '' ? { token: name } : { user: name, pass }
