import { throttle } from '@weir/web'
import { durableObjectStore } from '@weir/workers'

export { WeirHub } from '@weir/workers'

/** Three requests per 10 s for each address, wherever they arrive. */
const limit = throttle({ key: 'ip', limit: 3, interval: '10s', store: durableObjectStore('WEIR') })

export default { fetch: limit(() => new Response('Hello\n')) }
