import type { View } from '../src/protocol.ts'
import { count, percent, REASONS, rate } from './format.ts'

/** The reasons for rejections. */
export function Reasons({ view }: { view: View }) {
  const rejected = view.reasons.reduce((sum, { rate: each }) => sum + each, 0)
  return (
    <section class="panel" aria-labelledby="reasons">
      <h2 id="reasons">Reasons for rejections</h2>
      {view.reasons.length === 0 ? (
        <p class="soft">No request was rejected since these processes started.</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">Reason</th>
              <th scope="col" class="number">
                Now / s
              </th>
              <th scope="col" class="number">
                Share
              </th>
              <th scope="col" class="number">
                Since start
              </th>
            </tr>
          </thead>
          <tbody>
            {view.reasons.map((one) => (
              <tr key={one.reason}>
                <th scope="row">{REASONS[one.reason] ?? one.reason}</th>
                <td class={`number ${one.rate > 0 ? 'no' : 'soft'}`} data-label="Now / s">
                  {rate(one.rate)}
                </td>
                <td class="number" data-label="Share">
                  {rejected > 0 ? percent(one.rate / rejected) : '–'}
                </td>
                <td class="number" data-label="Since start">
                  {count(one.total)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}
