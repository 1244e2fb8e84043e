/** Owns the names of what a process of the service does: one does everything, or several share it. docs/design/roles.md "Roles: one service in several processes" */

/** `gateway`: browsers and their sound; `sip`: trunks and theirs; `actors`: calls and all that acts by itself; `api`: REST; `mcp`: MCP, and pages for people. */
export const allRoles = ['gateway', 'sip', 'actors', 'api', 'mcp'] as const
export type Role = (typeof allRoles)[number]
export type Roles = ReadonlySet<Role>

/** Why a role takes nothing new at this moment; null: it does. */
export type Unready =
  | 'starting'
  | 'draining'
  /** The database does not answer. */
  | 'database'
  /** Running calls leave no room here. */
  | 'no_room'
  /** No other process that it needs has room, or is heard. */
  | 'no_peer'

/** Of the roles of a process, in the order of `allRoles`. */
export type Readiness = Readonly<Partial<Record<Role, Unready | null>>>
