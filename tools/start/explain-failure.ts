/** Owns what is said of a start that fails: one sentence for what an operator can mend, and of a port that is taken, whether by another Parley. */
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
  return (await isParley(url)) ? `${error.message}. Another Parley runs there already, at ${url}` : error.message
}

const isOfTakenPort = ({ message, cause }: Error): boolean =>
  /^PORT\b|^HOST\b/.test(message) && cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE'

async function isParley(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/health`, { signal: AbortSignal.timeout(lookWithin) })
    return answer.ok && /"status":"ok"/.test(await answer.text())
  } catch {
    // Somebody else, who speaks another protocol or none.
    return false
  }
}
