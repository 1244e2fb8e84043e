/** Owns the addresses that answers name: the configured public URL, else the host the request came to. */

/** Without a slash at the end. */
export function publicUrlOf(configured: string | null, request: Request): string {
  return (configured ?? new URL(request.url).origin).replace(/\/+$/, '')
}

/** `wss` behind TLS, `ws` on a plain host. docs/contract/signaling.md "Joining". */
export const signalingUrlOf = (publicUrl: string): string => `${publicUrl.replace(/^http/, 'ws')}/v1/signaling`

/** As it is configured, else of the host that the request came to. */
export const signalingUrlFor = (
  { signalingUrl, publicUrl }: { readonly signalingUrl?: string | null | undefined; readonly publicUrl: string | null },
  request: Request,
): string => signalingUrl ?? signalingUrlOf(publicUrlOf(publicUrl, request))
