import { useEffect } from 'preact/hooks'

/** Set if the address contains `embed`. The page then shows only the scene, because it is part of another page. */
export const EMBEDDED: { readonly begin: number | undefined } | undefined = embeddedOf(new URLSearchParams(location.search))

function embeddedOf(parameters: URLSearchParams): { begin: number | undefined } | undefined {
  if (!parameters.has('embed')) return undefined
  // Seconds of the film.
  const at = Number(parameters.get('at'))
  return { begin: at > 0 && at < 3600 ? at * 1000 : undefined }
}

/** Reports the page's height to the page around it, once the scene is visible. */
export function useHeightTold(shown: unknown): void {
  useEffect(() => {
    const main = document.querySelector('main')
    if (EMBEDDED === undefined || shown === undefined || main === null || parent === window) return undefined
    const resized = new ResizeObserver(() => parent.postMessage({ weirHeight: Math.ceil(main.getBoundingClientRect().height) }, '*'))
    resized.observe(main)
    return () => resized.disconnect()
  }, [shown])
}
