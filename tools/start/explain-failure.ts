/** Owns what is said of a start that fails: one sentence for what an operator can mend, and of a port that is taken, whether by another Parley, and how that one is. */
import { WrongSettings } from '../../app/config/setting.ts'

const lookWithin = 1_500

/** `address`: where this process was to listen. Never rejects. */
export async function explainFailure(
  error: unknown,
  address: { readonly host: string; readonly port: number } | null,
): Promise<string> {
  if (!(error instanceof WrongSettings)) return error instanceof Error ? (error.stack ?? error.message) : String(error)
  if (address === null || !isOfTakenPort(error)) return error.message
  const url = `http://${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`
  const other = await parleyAt(url)
  return other === null ? error.message : `${error.message}. ${other}`
}

const isOfTakenPort = ({ message, cause }: Error): boolean =>
  /^PORT\b|^HOST\b/.test(message) && cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE'

/** Null: it is somebody else. */
async function parleyAt(url: string): Promise<string | null> {
  try {
    const ask = async (path: string): Promise<string> =>
      (await fetch(`${url}${path}`, { signal: AbortSignal.timeout(lookWithin) })).text()
    if (!/"status":"ok"/.test(await ask('/health'))) return null
    return /draining/.test(await ask('/ready'))
      ? `Another Parley ends its calls there, at ${url}: start again when it has ended`
      : `Another Parley runs there already, at ${url}`
  } catch {
    // Who speaks another protocol or none.
    return null
  }
}
