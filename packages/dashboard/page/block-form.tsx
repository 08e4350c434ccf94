import { useState } from 'preact/hooks'

const MINUTE = 60_000
export const DURATIONS = [
  ['1 minute', MINUTE],
  ['10 minutes', 10 * MINUTE],
  ['1 hour', 60 * MINUTE],
  ['1 day', 24 * 60 * MINUTE],
  ['1 week', 7 * 24 * 60 * MINUTE],
] as const

interface BlockFormProps {
  readonly policies: readonly string[]
  readonly block: (body: { key: string; policy?: string; duration: number }) => Promise<void>
}

/** A form that blocks a key manually. */
export function BlockForm({ policies, block }: BlockFormProps) {
  const [key, setKey] = useState('')
  const [policy, setPolicy] = useState('')
  const [duration, setDuration] = useState<number>(10 * MINUTE)
  const submit = (event: Event): void => {
    event.preventDefault()
    if (key === '') return
    void block({ key, duration, ...(policy !== '' && { policy }) }).then(() => setKey(''))
  }
  return (
    <form class="block" onSubmit={submit} aria-label="Block a key">
      <label>
        <span>Key</span>
        <input
          name="key"
          value={key}
          onInput={(event) => setKey(event.currentTarget.value)}
          autoComplete="off"
          spellcheck={false}
          required
        />
      </label>
      <label>
        <span>Policy</span>
        <select name="policy" value={policy} onChange={(event) => setPolicy(event.currentTarget.value)}>
          <option value="">All</option>
          {policies.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>For</span>
        <select name="duration" value={duration} onChange={(event) => setDuration(Number(event.currentTarget.value))}>
          {DURATIONS.map(([name, ms]) => (
            <option key={name} value={ms}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <button type="submit">Block</button>
    </form>
  )
}
