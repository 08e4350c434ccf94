import { useEffect, useState } from 'preact/hooks'
import type { Done } from '../src/protocol.ts'
import { keyName } from './format.ts'
import { type Action, type ActionBody, send } from './stream.ts'

const DONE: Readonly<Record<Action, (key: string) => string>> = {
  block: (key) => `Blocked ${key}.`,
  unblock: (key) => `Unblocked ${key}.`,
  reset: (key) => `Counters of ${key} reset.`,
  note: (key) => `Saved the note on ${key}.`,
}
/** Milliseconds for which an action can be undone. */
const UNDO_FOR = 10_000

export type Act = (action: Action, body: ActionBody) => Promise<void>

export interface Acting {
  readonly said: string
  readonly act: Act
  /** The reason for the next actions, as the audit log will contain it. */
  readonly reason: string
  readonly setReason: (reason: string) => void
  /** Undoes the last action. Undefined if it can't be undone. */
  readonly undo: (() => Promise<void>) | undefined
}

/** Actions on keys, and the result of the last one as text. */
export function useActing(): Acting {
  const [said, say] = useState('')
  const [reason, setReason] = useState('')
  const [back, setBack] = useState<Done['undo']>()
  useEffect(() => {
    if (back === undefined) return undefined
    const timer = setTimeout(() => setBack(undefined), UNDO_FOR)
    return () => clearTimeout(timer)
  }, [back])
  const attempt = async (work: () => Promise<string>): Promise<void> => {
    try {
      say(await work())
    } catch (error) {
      say(error instanceof Error ? error.message : String(error))
    }
  }
  const act: Act = (action, body) =>
    attempt(async () => {
      setBack(undefined)
      const { undo } = await send<Done>(action, { ...body, ...(reason !== '' && action !== 'note' && { reason }) })
      setBack(undo)
      return DONE[action](keyName(body.key ?? ''))
    })
  const undo = (): Promise<void> =>
    attempt(async () => {
      if (back === undefined) return said
      setBack(undefined)
      const { action, ...body } = back
      await send<Done>(action, body)
      return `Undone for ${keyName(back.key)}.`
    })
  return { said, act, reason, setReason, undo: back && undo }
}

/** The result of the last action, and a button to undo it. */
export function Said({ acting: { said, undo } }: { acting: Acting }) {
  return (
    <div class="said">
      <p role="status">{said}</p>
      {undo !== undefined && (
        <button type="button" class="quiet" onClick={undo}>
          Undo
        </button>
      )}
    </div>
  )
}

export function ReasonField({ acting: { reason, setReason } }: { acting: Acting }) {
  return (
    <label class="reason">
      <span>Reason, for the audit log</span>
      <input
        name="reason"
        value={reason}
        maxLength={200}
        onInput={(event) => setReason(event.currentTarget.value)}
        autoComplete="off"
        placeholder="Optional"
      />
    </label>
  )
}
