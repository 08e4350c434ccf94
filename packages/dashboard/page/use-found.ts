import { useEffect, useRef, useState } from 'preact/hooks'
import type { Found, View } from '../src/protocol.ts'
import { send } from './stream.ts'

/** The server's data of a key, updated every second. Undefined without a key. */
export function useFound(key: string | undefined, view: View): Found | undefined {
  const [found, setFound] = useState<{ readonly asked: string; readonly found: Found }>()
  const asked = useRef<string>()
  const second = Math.floor(view.time / 1_000)
  useEffect(() => {
    asked.current = key
    if (key === undefined) {
      setFound(undefined)
      return undefined
    }
    const timer = setTimeout(() => {
      send<Found>('find', { key }).then(
        (answer) => asked.current === key && setFound({ asked: key, found: answer }),
        () => setFound(undefined),
      )
    }, 200)
    return () => clearTimeout(timer)
  }, [key, second])
  return found?.asked === key ? found?.found : undefined
}
