import type { PolicyOutcome } from '../runs/policy.ts'
import { logAnswer, logCut, logTable, policyTable } from '../tables/tables.ts'
import { CopyButton } from './copy-button.tsx'
import { Figures } from './figures.tsx'
import { Scroll } from './scroll.tsx'

/** The effect of a visitor's own policy in a cluster. */
export function PolicyView({ outcome }: { readonly outcome: PolicyOutcome }) {
  const { log } = outcome
  return (
    <section class="panel results" aria-label="Results">
      {log !== undefined && (
        <>
          <h2>Your access log</h2>
          <p class="answer">{logAnswer(log)}</p>
          {logCut(log) !== undefined && <p class="cut">{logCut(log)}</p>}
          <Figures table={logTable(log)} />
          <h2>In a cluster</h2>
        </>
      )}
      <Figures table={policyTable(outcome)} />
      <h2>A sentence for an agreement</h2>
      <blockquote>{outcome.agreement}</blockquote>
      <h2>A test of this sentence</h2>
      <Scroll label="The test">
        <pre>
          <code>{outcome.test}</code>
        </pre>
      </Scroll>
      <CopyButton
        label="Copy the test"
        text={outcome.test}
        done="Copied."
        otherwise="The browser did not allow it: select the text and copy it."
      />
    </section>
  )
}
