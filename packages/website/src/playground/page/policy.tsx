import { useState } from 'preact/hooks'
import type { PolicyOutcome } from '../runs/policy.ts'
import { logTable, policyTable } from '../tables/tables.ts'
import { Figures } from './figures.tsx'
import { Scroll } from './scroll.tsx'

/** The effect of a visitor's own policy in a cluster. */
export function PolicyView({ outcome }: { readonly outcome: PolicyOutcome }) {
  return (
    <section class="panel results" aria-label="Results">
      <Figures table={policyTable(outcome)} />
      <h2>A sentence for an agreement</h2>
      <blockquote>{outcome.agreement}</blockquote>
      <h2>A test of this sentence</h2>
      <Copied text={outcome.test} />
      {outcome.log !== undefined && (
        <>
          <h2>Your access log</h2>
          <Figures table={logTable(outcome.log)} />
        </>
      )}
    </section>
  )
}

function Copied({ text }: { readonly text: string }) {
  const [said, setSaid] = useState('')
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => setSaid('Copied.'),
      () => setSaid('The browser did not allow it: select the text and copy it.'),
    )
  }
  return (
    <>
      <Scroll label="The test">
        <pre>
          <code>{text}</code>
        </pre>
      </Scroll>
      <button type="button" class="quiet" onClick={copy}>
        Copy the test
      </button>{' '}
      <span role="status">{said}</span>
    </>
  )
}
