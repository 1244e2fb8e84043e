/** Owns whether the listener's driver that was set can be used: asked before anything is opened, and answered for the operator. */
import { loadUws } from '../gateway/listener/uws-listener.ts'
import { presetVariable } from './config.ts'
import { WrongSettings } from './config/setting.ts'

/** Throws WrongSettings where the package or its binary for this machine is missing. */
export async function requireDriver(
  driver: 'node' | 'uws',
  load: () => Promise<unknown> = () => loadUws(presetVariable),
): Promise<void> {
  if (driver === 'node') return
  await load().catch((cause: unknown) => {
    throw new WrongSettings(
      `HTTP_DRIVER=uws: uWebSockets.js does not load here (${reasonOf(cause)}); install its publisher's package as docs/production-image.md says, or set HTTP_DRIVER=node`,
      { cause },
    )
  })
}

/** The library wraps what the system said in a page of its own, of which that is the last line. */
function reasonOf(error: unknown): string {
  const lines = (error instanceof Error ? error.message : String(error)).trim().split('\n')
  return (lines.at(-1) ?? '').replace(/^Error: /, '')
}
