import { useEffect, useState } from 'preact/hooks'

const START = '#key='

/** The address of a key's own page. */
export function addressOf(key: string): string {
  return START + encodeURIComponent(key.replace(/\p{Cs}/gu, '\ufffd'))
}

/** The address of the page of rules. */
export const RULES = '#rules'

/** The open page: the rules, a key, or the overview. */
export interface Place {
  readonly rules: boolean
  readonly key: string | undefined
}

export function usePlace(): Place {
  const [place, setPlace] = useState(placeOf(location.hash))
  useEffect(() => {
    const changed = (): void => {
      setPlace(placeOf(location.hash))
      scrollTo(0, 0)
    }
    addEventListener('hashchange', changed)
    return () => removeEventListener('hashchange', changed)
  }, [])
  return place
}

function placeOf(hash: string): Place {
  return { rules: hash === RULES, key: keyOf(hash) }
}

function keyOf(hash: string): string | undefined {
  if (!hash.startsWith(START)) return undefined
  try {
    return decodeURIComponent(hash.slice(START.length))
  } catch {
    return undefined
  }
}
