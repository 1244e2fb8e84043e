/** Owns the setting of what this process does, and what processes that share the work need besides. */
import { z } from 'zod'
import { allRoles, type Role, type Roles } from '../../model/roles.ts'
import { List, optional, WebSocketUrl, WrongSettings } from './setting.ts'

const isRole = (name: string): name is Role => (allRoles as readonly string[]).includes(name)
const rule = `must be some of ${allRoles.join(', ')}, with commas between them`

export const roleSettings = z.object({
  ROLES: List.refine((list) => list.length > 0 && list.every(isRole), rule).default([...allRoles]),
  SIGNALING_URL: optional(WebSocketUrl.transform((given) => given.replace(/\/+$/, ''))),
})

type Settings = z.infer<typeof roleSettings> & {
  readonly NATS_URL: string | null
  readonly DATABASE_URL: string | null
  readonly PUBLIC_URL: string | null
}

/** Throws WrongSettings for a process that could not work with the others. */
export function rolesOf({ ROLES, NATS_URL, DATABASE_URL, PUBLIC_URL, SIGNALING_URL }: Settings) {
  const roles: Roles = new Set(allRoles.filter((role) => ROLES.includes(role)))
  const missing = allRoles.filter((role) => !roles.has(role))
  if (missing.length > 0) {
    const others = `ROLES leaves ${missing.join(', ')} to other processes`
    if (NATS_URL === null) throw new WrongSettings(`${others}: it needs NATS_URL as well, by which they are reached`)
    if (DATABASE_URL === null) throw new WrongSettings(`${others}: it needs DATABASE_URL as well, which they share`)
  }
  const makesWebCalls = roles.has('api') || roles.has('mcp')
  if (makesWebCalls && !roles.has('gateway') && PUBLIC_URL === null && SIGNALING_URL === null)
    throw new WrongSettings(
      'ROLES leaves gateway to other processes: it needs SIGNALING_URL, or PUBLIC_URL, as well, where browsers reach them',
    )
  return {
    roles,
    /** Where browsers join web calls; null: below the public URL. */
    signalingUrl: SIGNALING_URL,
  }
}
