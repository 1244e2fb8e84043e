/**
 * Owns which name a TLS peer has proved at which address. Carriers write addresses into Contact and Record-Route, and their certificates name
 * none: within a dialog such an address stands for the name that was asked for when the dialog began (RFC 5922 §7.2).
 */
import { isIP } from 'node:net'
import type { Target } from './transport.ts'

export type ProvedNames = {
  /** A connection to it was opened, its certificate is good. */
  add(target: Target): void
  /** Of an address: the same by its name, where one was proved. */
  named(target: Target): Target
}

const maxNames = 1_000

export function createProvedNames(): ProvedNames {
  const names = new Map<string, string>()
  return {
    add({ serverName, remote }) {
      if (serverName === null || isIP(serverName) !== 0) return
      const [oldest] = names.keys()
      if (names.size >= maxNames && oldest !== undefined) names.delete(oldest)
      names.delete(remote.address)
      names.set(remote.address, serverName)
    },
    named(target) {
      const serverName = isNameless(target) ? (names.get(target.remote.address) ?? null) : null
      return serverName === null ? target : { ...target, serverName }
    },
  }
}

/** An address that TLS would have to prove as such. */
export const isNameless = ({ protocol, serverName }: Target): boolean =>
  protocol === 'tls' && serverName !== null && isIP(serverName) !== 0
