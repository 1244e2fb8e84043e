/**
 * Owns where log lines go: JSON on standard error, one per line, so that standard output stays for people. Personal data is masked, unless
 * the operator wants to read it: logs go to more places than calls do, and stay there.
 */
import { pino, type Logger } from 'pino'
import type { Log, LogFields } from '../model/log.ts'
import { createLogLines } from './log-lines.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

const standardError = 2

export function createLog(level: LogLevel, tellsPersonal = false): Log {
  const error = tellsPersonal ? pino.stdSerializers.errWithCause : withoutDetail
  const options = { level, serializers: { error }, formatters: { level: nameOf } }
  return toLog(pino(options, createLogLines(standardError)), tellsPersonal ? asTheyAre : masked)
}

const mask = '[masked]'
/** Of a refused statement the database tells the values of the row. */
function withoutDetail(error: Error): object {
  const { detail: _, where: __, ...told } = pino.stdSerializers.errWithCause(error)
  return told
}

const asTheyAre = (fields: LogFields = {}): LogFields => fields

/** Which facts there are is told. */
function masked(fields: LogFields = {}): LogFields {
  const { personal } = fields
  if (personal === undefined) return fields
  return { ...fields, personal: Object.fromEntries(Object.keys(personal).map((name) => [name, mask])) }
}

const nameOf = (level: string) => ({ level })

function toLog(logger: Logger, told: (fields?: LogFields) => LogFields): Log {
  return {
    debug: (message, fields) => logger.debug(told(fields), message),
    info: (message, fields) => logger.info(told(fields), message),
    warn: (message, fields) => logger.warn(told(fields), message),
    error: (message, fields) => logger.error(told(fields), message),
    with: (fields) => toLog(logger.child(told(fields)), told),
  }
}
