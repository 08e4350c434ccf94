import type { AnyPolicyOptions } from '../../src/decide/policy.ts'
import type { StoreNode, SyncReply, SyncRequest } from '../../src/store/contract.ts'
import type { Node, NodeOptions, Scene } from './nodes.ts'

/** A process whose connection to the store can be cut. Then no message arrives in either direction, and calls fail after a while. */
export function cuttable(
  here: Scene,
  policies: AnyPolicyOptions<never>,
  options: NodeOptions = {},
): { readonly node: Node; readonly way: { cut: boolean } } {
  const way = { cut: false }
  const { store, world } = here
  const failed = async (): Promise<never> => {
    await new Promise((resolve) => world.setTimer(() => resolve(undefined), store.storeTimeout))
    throw new Error('cut')
  }
  const node = here.node(policies, {
    ...options,
    store: {
      kind: store.kind,
      coordinate: store.coordinate,
      open: (one: StoreNode) => {
        const connection = store.open({ ...one, announced: (news) => (way.cut ? undefined : one.announced(news)) })
        return {
          close: () => connection.close(),
          sync: async (request: SyncRequest): Promise<SyncReply> => {
            if (way.cut) return failed()
            const reply = await connection.sync(request)
            return way.cut ? failed() : reply
          },
        }
      },
    },
  } as NodeOptions)
  return { node, way }
}
