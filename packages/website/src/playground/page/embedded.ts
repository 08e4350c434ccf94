import { useEffect } from 'preact/hooks'

/** Whether the address shows that the page is part of another one: then it shows the scene alone. */
export const EMBEDDED: { readonly begin: number } | undefined = embeddedOf(new URLSearchParams(location.search))

function embeddedOf(parameters: URLSearchParams): { begin: number } | undefined {
  if (!parameters.has('embed')) return undefined
  // Seconds of the film.
  const at = Number(parameters.get('at') ?? 0)
  return { begin: at > 0 && at < 3600 ? at * 1000 : 0 }
}

/** Tells the page that holds this one how high it is, once there is something to see. */
export function useHeightTold(shown: unknown): void {
  useEffect(() => {
    const main = document.querySelector('main')
    if (EMBEDDED === undefined || shown === undefined || main === null || parent === window) return undefined
    const resized = new ResizeObserver(() => parent.postMessage({ weirHeight: Math.ceil(main.getBoundingClientRect().height) }, '*'))
    resized.observe(main)
    return () => resized.disconnect()
  }, [shown])
}
