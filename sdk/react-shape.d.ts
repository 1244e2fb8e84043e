/**
 * Owns as much of React's types as the hooks use, for checking them here. It is not packed: whoever imports the hooks has React's own types, or none.
 */
declare module 'react' {
  export function useState<Value>(first: Value): [Value, (next: Value) => void]
  export function useRef<Value>(first: Value): { current: Value }
  export function useEffect(run: () => void | (() => void) | undefined, seen?: readonly unknown[]): void
  export function useCallback<Run extends (...given: never[]) => unknown>(run: Run, seen: readonly unknown[]): Run
  export function useSyncExternalStore<Value>(
    subscribe: (changed: () => void) => () => void,
    look: () => Value,
    lookOnServer: () => Value,
  ): Value
}
