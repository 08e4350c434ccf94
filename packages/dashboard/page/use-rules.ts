import { useEffect, useState } from 'preact/hooks'
import type { RulesFound, View } from '../src/protocol.ts'
import { send } from './stream.ts'

/** Milliseconds between two requests, and after a letter was typed. */
const EVERY = 5_000
const SOON = 200

/** The rules that the server's process follows. They are updated regularly, and when a process reports other rules. */
export function useRules(search: string, from: number, view: View): RulesFound | undefined {
  const [found, setFound] = useState<RulesFound>()
  const part = Math.floor(view.time / EVERY)
  const told = JSON.stringify(view.nodes.map(({ rules }) => rules))
  useEffect(() => {
    let gone = false
    const timer = setTimeout(() => {
      // Without an answer the last rules stay.
      send<RulesFound>('rules', { key: search, from }).then(
        (answer) => !gone && setFound(answer),
        () => {},
      )
    }, SOON)
    return () => {
      gone = true
      clearTimeout(timer)
    }
  }, [search, from, part, told])
  return found
}
