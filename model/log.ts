/**
 * Owns the shape of logging: constant text, facts in fields. Personal data (numbers, names, what was said) goes under `personal` only,
 * where a deployment can drop it; secrets go nowhere.
 */
export type LogFields = Readonly<Record<string, unknown>> & { readonly personal?: Readonly<Record<string, unknown>> }

export type Log = {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  /** The same log with `fields` on every line. */
  with(fields: LogFields): Log
}

/** Says nothing. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {}, with: () => silentLog }
