/** Owns the tools that a Gemini Live session has called and that are not answered yet: the provider's ids become ids that no other session of the call has. */

export type PendingTools = {
  begin(theirs: string | undefined, isBlocking: boolean): string
  /** Null: not of this session, or nobody waits for it. */
  end(ours: string): { readonly theirs: string; readonly isBlocking: boolean } | null
  cancel(theirs: string): string[]
  /** The model waits for none of them. */
  areSettled(): boolean
}

const maxPending = 64

export function createPendingTools(session: string): PendingTools {
  const pending = new Map<string, { theirs: string; isBlocking: boolean }>()
  let count = 0
  return {
    begin(theirs, isBlocking) {
      const ours = `${session}-${++count}`
      pending.set(ours, { theirs: theirs ?? '', isBlocking })
      if (pending.size > maxPending) pending.delete([...pending.keys()][0]!)
      return ours
    },
    end(ours) {
      const call = pending.get(ours) ?? null
      pending.delete(ours)
      return call
    },
    cancel(theirs) {
      const ours = [...pending].flatMap(([key, call]) => (call.theirs === theirs ? [key] : []))
      for (const key of ours) pending.delete(key)
      return ours
    },
    areSettled: () => ![...pending.values()].some(({ isBlocking }) => isBlocking),
  }
}
