/** Owns where log lines go: JSON on standard error, one per line, so that standard output stays for people. */
import { pino, type Logger } from 'pino'
import type { Log } from '../model/log.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

export function createLog(level: LogLevel): Log {
  const options = { level, serializers: { error: pino.stdSerializers.errWithCause }, formatters: { level: nameOf } }
  return toLog(pino(options, pino.destination({ dest: 2, sync: false })))
}

const nameOf = (level: string) => ({ level })

function toLog(logger: Logger): Log {
  return {
    debug: (message, fields) => logger.debug(fields ?? {}, message),
    info: (message, fields) => logger.info(fields ?? {}, message),
    warn: (message, fields) => logger.warn(fields ?? {}, message),
    error: (message, fields) => logger.error(fields ?? {}, message),
    with: (fields) => toLog(logger.child(fields)),
  }
}
