/** Owns the command that reads the audit log. */
import { toIso } from '../../model/clock.ts'
import { AuditLogQuery, type AuditRow } from '../../model/audit.ts'
import { listAuditRows } from '../../store/audit-rows.ts'
import { accountOf, checked, numberOf, textOf, type Commands } from './command.ts'

const text = { type: 'string' } as const

export const auditCommands: Commands = {
  'audit list': {
    usage:
      'audit list [accountId] [--actor <id, or api_key|mcp_client|user|operator>] [--action <operation>] [--call <callId>]\n' +
      '    [--from <ISO 8601>] [--to <ISO 8601>] [--limit <count>]',
    options: { actor: text, action: text, call: text, from: text, to: text, limit: text },
    async runOn({ sql, print }, [account], options) {
      const limit = numberOf(options, 'limit', { least: 1, most: 100 }) ?? 20
      const query = checked(AuditLogQuery, {
        actor: textOf(options, 'actor'),
        action: textOf(options, 'action'),
        callId: textOf(options, 'call'),
        from: textOf(options, 'from'),
        to: textOf(options, 'to'),
        limit,
      })
      const rows = await listAuditRows(sql, account === undefined ? undefined : await accountOf(sql, account), query)
      for (const row of rows.slice(0, limit)) print(lineOf(row))
      print(rows.length > limit ? `the newest ${limit}; there are more` : `${rows.length} entries`)
      return 0
    },
  },
}

function lineOf(row: AuditRow): string {
  const { at, accountId, actorKind, keyId, clientId, userId, action, result, errorCode, callIds } = row
  const who = [actorKind, keyId, clientId, userId].filter((part) => part !== null).join(' ')
  const became = [result ?? 'unknown', errorCode].filter((part) => part !== null).join(' ')
  const calls = callIds.length === 0 ? '' : `  calls ${callIds.join(' ')}`
  return `${toIso(at)}  ${accountId ?? 'no account'}  ${who}  ${action}  ${became}${calls}  ${JSON.stringify(row.arguments)}`
}
