/** Owns a log that keeps its lines for the test instead of printing them. */
import type { Log, LogFields } from '../../model/log.ts'

export type QuietLog = Log & { readonly lines: { level: string; message: string; fields: LogFields }[] }

export function createQuietLog(lines: QuietLog['lines'] = [], bound: LogFields = {}): QuietLog {
  const keep =
    (level: string) =>
    (message: string, fields: LogFields = {}) =>
      void lines.push({ level, message, fields: { ...bound, ...fields } })
  return {
    lines,
    debug: keep('debug'),
    info: keep('info'),
    warn: keep('warn'),
    error: keep('error'),
    with: (fields) => createQuietLog(lines, { ...bound, ...fields }),
  }
}
