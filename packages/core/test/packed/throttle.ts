// Run by packages/acceptance in empty projects of every kind, from the packed tarball: a limit of 2 meets three requests.
import { createThrottler, memoryStore } from '@weir/core'
import { checkRules, parseRules } from '@weir/core/rules'

async function main(): Promise<void> {
  const throttler = createThrottler({ policies: [{ name: 'user', limit: 2, interval: '1h' }], store: memoryStore() })
  const { policies } = checkRules(
    parseRules('{ "version": 1, "policies": [{ "name": "user", "key": "ip", "limit": 2, "interval": "1h" }] }'),
  )
  throttler.update(policies as { name: 'user'; limit: 2; interval: '1h' }[])
  const outcomes: string[] = []
  for (let request = 0; request < 3; request++) {
    const decision = throttler.check('ann')
    const name: 'user' | undefined = decision.policy?.name
    outcomes.push(name === 'user' && decision.allowed ? 'allowed' : decision.reason === 'limit' ? 'rejected' : decision.reason)
  }
  console.log(outcomes.join(' '))
  await throttler.close()
}

void main()
