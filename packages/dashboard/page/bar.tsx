import { count, percent } from './format.ts'

interface BarProps {
  readonly used: number
  /** Null for a key without a limit, because JSON has no infinite numbers. */
  readonly limit: number | null
  /** Units beyond the size of a bucket, which must drain first. */
  readonly debt?: number
}

/** The used part of a limit, as numbers and as a bar. Units above the limit are shown apart, so that the part is at most 100 %. */
export function Bar({ used, limit, debt = 0 }: BarProps) {
  const level = limit === null ? used : Math.min(used, limit)
  const part = limit !== null && limit > 0 ? level / limit : 0
  const above = Math.round(used - level)
  const tone = part >= 1 ? 'full' : part >= 0.8 ? 'near' : ''
  return (
    <span class="usage">
      <span class="bar" aria-hidden="true">
        <i class={tone} style={{ inlineSize: `${part * 100}%` }} />
      </span>
      <span class="part">
        {count(level)} <span class="soft">of {limit === null ? 'no limit' : count(limit)}</span>
        {above > 0 && <span class="no"> {count(above)} over limit</span>}
        {debt >= 1 && <span class="no"> debt {count(Math.round(debt))}</span>}
      </span>
      <span class="percent">{percent(part)}</span>
    </span>
  )
}
