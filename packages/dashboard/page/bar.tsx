import { count, percent } from './format.ts'

/** The used part of a limit, as numbers and as a bar. */
export function Bar({ used, limit }: { used: number; limit: number }) {
  const part = limit > 0 ? used / limit : 0
  const tone = part >= 1 ? 'full' : part >= 0.8 ? 'near' : ''
  return (
    <span class="usage">
      <span class="bar" aria-hidden="true">
        <i class={tone} style={{ inlineSize: `${Math.min(100, part * 100)}%` }} />
      </span>
      <span class="part">
        {count(used)} <span class="soft">of {count(limit)}</span>
      </span>
      <span class="percent">{percent(part)}</span>
    </span>
  )
}
