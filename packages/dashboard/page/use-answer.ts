import { useEffect, useRef, useState } from 'preact/hooks'
import type { Audit, Found, RulesFound, Series, View } from '../src/protocol.ts'
import { type ActionBody, send } from './stream.ts'

/** Milliseconds after a letter was typed. */
const SOON = 100
const NONE: Series['points'] = []

interface Question {
  readonly action: string
  /** Undefined asks nothing. */
  readonly body: ActionBody | undefined
  readonly time: number
  /** Milliseconds between two requests. */
  readonly every: number
  /** A new request follows each change of this text. */
  readonly changed?: string
  /** Whether the answer to an earlier body stays until the next one. */
  readonly keep?: boolean
}

/** The server's answer to a question. It is updated regularly, and stays if a request fails. */
function useAnswer<T>({ action, body, time, every, changed = '', keep = false }: Question): T | undefined {
  const [found, setFound] = useState<{ readonly asked: string; readonly answer: T }>()
  const asked = body === undefined ? '' : JSON.stringify(body)
  const latest = useRef(asked)
  latest.current = asked
  useEffect(() => {
    if (body === undefined) return undefined
    const request = (): void => {
      send<T>(action, body).then(
        (answer) => latest.current === asked && setFound({ asked, answer }),
        () => {},
      )
    }
    const timer = setTimeout(request, SOON)
    return () => clearTimeout(timer)
  }, [asked, Math.floor(time / every), changed])
  return found?.asked === asked || keep ? found?.answer : undefined
}

/** The server's data of a key or of keys that contain a text. Undefined without a text. */
export function useFound(key: string | undefined, view: View): Found | undefined {
  return useAnswer({ action: 'find', body: key === undefined ? undefined : { key }, time: view.time, every: 1_000 })
}

/** The rules that the server's process follows. They are updated regularly, and when a process reports other rules. */
export function useRules(search: string, from: number, view: View): RulesFound | undefined {
  const changed = JSON.stringify(view.nodes.map(({ rules }) => rules))
  return useAnswer({ action: 'rules', body: { key: search, from }, time: view.time, every: 5_000, changed, keep: true })
}

/** Actions of people, newest first. */
export function useAudit({ time }: View): Audit['entries'] | undefined {
  return useAnswer<Audit>({ action: 'audit', body: { key: '' }, time, every: 2_000 })?.entries
}

/** Requests of the last half hour for a policy, a process or a key. */
export function useSeries(of: ActionBody, view: View): Series['points'] {
  const question = { action: 'series', body: { key: '', ...of }, time: view.time, every: 5_000 }
  return useAnswer<Series>(question)?.points ?? NONE
}
