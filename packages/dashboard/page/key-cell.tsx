import { visible } from '../src/visible.ts'
import { addressOf } from './address.ts'
import { keyName } from './format.ts'

interface KeyCellProps {
  readonly policy: string
  readonly name: string
  readonly note?: string | undefined
  /** Text after the policy. */
  readonly about?: string
}

/** The first cell of a row: a key and its policy, with links to their pages. */
export function KeyCell({ policy, name, note, about }: KeyCellProps) {
  return (
    <th scope="row">
      <a class="key" href={addressOf('key', name)} title={keyName(name)}>
        {keyName(name)}
      </a>
      <span class="rule">
        <a href={addressOf('policy', policy)}>{visible(policy)}</a>
        {about !== undefined && `, ${about}`}
      </span>
      {note !== undefined && <span class="note">{note}</span>}
    </th>
  )
}
