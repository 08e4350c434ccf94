import { useState } from 'preact/hooks'
import { keyName } from './format.ts'
import { type Action, type ActionBody, send } from './stream.ts'

const DONE: Readonly<Record<Action, string>> = { block: 'Blocked', unblock: 'Unblocked', reset: 'Reset', note: 'Noted' }

export type Act = (action: Action, body: ActionBody) => Promise<void>

/** Actions on keys, and the result of the last one as text. */
export function useActing(): { readonly said: string; readonly act: Act } {
  const [said, say] = useState('')
  const act: Act = async (action, body) => {
    try {
      await send(action, body)
      say(`${DONE[action]} ${keyName(body.key)}.`)
    } catch (error) {
      say(error instanceof Error ? error.message : String(error))
    }
  }
  return { said, act }
}
