import type { Hello, Point, View } from '../src/protocol.ts'

/** The most points of the charts, which cover ten minutes. */
const KEPT = 600

export interface Live {
  readonly view: View | undefined
  /** One point per second, for at most ten minutes. */
  readonly points: readonly Point[]
  /** Points from before, as processes remember them, several per minute. */
  readonly earlier: readonly Point[]
  /** Whether the stream is open. */
  readonly connected: boolean
  /** Whether there is a session to end. */
  readonly signedIn: boolean
}

/** Follows the server's stream, and reconnects when it ends: after a restart, a network failure, or a temporary rejection. */
export function follow(changed: (live: Live) => void): () => void {
  let live: Live = { view: undefined, points: [], earlier: [], connected: false, signedIn: false }
  let build: string | undefined
  let source: EventSource | undefined
  let retry: ReturnType<typeof setTimeout> | undefined
  const set = (part: Partial<Live>): void => {
    live = { ...live, ...part }
    changed(live)
  }
  const open = (): void => {
    source = new EventSource('events')
    source.addEventListener('hello', ({ data }) => {
      const hello = JSON.parse(data) as Hello
      // The server was updated while the page was open.
      if (build !== undefined && build !== hello.build) location.reload()
      build = hello.build
      const known = new Set(live.points.map(([time]) => time))
      const points = [...live.points, ...hello.history.filter(([time]) => !known.has(time))].sort((a, b) => a[0] - b[0])
      set({ points: points.slice(-KEPT), earlier: hello.earlier, connected: true, signedIn: hello.signOut })
    })
    source.addEventListener('earlier', ({ data }) => set({ earlier: JSON.parse(data) as Point[] }))
    // After an outage the processes report the values that were unknown.
    source.addEventListener('filled', ({ data }) => {
      const filled = new Map((JSON.parse(data) as Point[]).map((point) => [point[0], point]))
      set({ points: live.points.map((point) => filled.get(point[0]) ?? point) })
    })
    source.addEventListener('view', ({ data }) => {
      const view = JSON.parse(data) as View
      const last = live.points.at(-1)
      // Views between two seconds only report changes. The charts get one point per second.
      const points = last === undefined || view.point[0] - last[0] > 800 ? [...live.points, view.point].slice(-KEPT) : live.points
      set({ view, points, connected: true })
    })
    source.addEventListener('error', () => {
      set({ connected: false })
      // After an answer other than 200 a browser does not retry.
      if (source?.readyState !== EventSource.CLOSED) return
      clearTimeout(retry)
      retry = setTimeout(() => void isSignedOut().then((out) => (out ? location.reload() : open())), 1_000)
    })
  }
  open()
  return () => {
    clearTimeout(retry)
    source?.close()
  }
}

/** Whether the session has ended. A reload then shows the sign-in page. */
async function isSignedOut(): Promise<boolean> {
  try {
    return (await fetch('./', { method: 'HEAD' })).status === 401
  } catch {
    return false
  }
}

/** Ends the session at the server and in all tabs of this browser. */
export async function signOut(): Promise<void> {
  try {
    await fetch('sign-out', { method: 'POST', headers: { 'X-Weir-Dashboard': '1' } })
  } finally {
    location.reload()
  }
}

export type Action = 'block' | 'unblock' | 'reset' | 'note'

export interface ActionBody {
  readonly key?: string
  readonly policy?: string
  readonly node?: string
  readonly duration?: number
  readonly note?: string
  readonly from?: number
  readonly reason?: string
  readonly id?: string
}

/** Sends an action or a question to the server. Rejects with the server's error message. */
export async function send<T>(action: string, body: ActionBody): Promise<T> {
  const response = await fetch(action, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Weir-Dashboard': '1' },
    body: JSON.stringify(body),
  })
  if (response.status === 401) location.reload()
  const answer = (await response.json()) as T & { error?: string }
  if (!response.ok) throw new Error(answer.error ?? `The server answered ${response.status}.`)
  return answer
}
