export { type AlgorithmContractOptions, algorithmContract } from './algorithm-contract/algorithm-contract.ts'
export type { AlgorithmModel, AlgorithmUnderTest } from './algorithm-contract/model.ts'
export { type Balancing, type BalancingContext, moving, type Picker, roundRobin, sticky, uniform, zipf } from './balancing.ts'
export { type Distribution, exponentialAbove, logNormal, uniformBetween, WeightedIndex, zipfWeights } from './distribution.ts'
export { type FaceContractOptions, faceContract } from './face-contract.ts'
export type { FaceAdapter, FaceServer } from './face-contract-context.ts'
export { crashes, doubling, type Fault, type FaultPlan, faults, type OutageMode, outages, restarts } from './fault.ts'
export { type FaultProxy, type FaultProxyOptions, faultProxy } from './fault-proxy.ts'
export { type Figures, figuresOf } from './figures.ts'
export type { IntervalMeasure } from './ledger.ts'
export {
  type Arrivals,
  bursts,
  type Course,
  type KeyedLoad,
  type Load,
  type LoadContext,
  manyKeys,
  poisson,
  type Stretch,
  squareWave,
  type TraceRequest,
  together,
  trace,
} from './load.ts'
export { type Lies, lyingStore, mutated, NONSENSE } from './lying-store.ts'
export { ManualClock, manualClock, NodeClock, type NodeClockOptions } from './manual-clock.ts'
export type { NetworkOptions } from './network.ts'
export type { ProxyFaults } from './proxy-faults.ts'
export { SeededRandom } from './random.ts'
export { FixedReference, type Reference, SlidingReference } from './reference.ts'
export { describeScenario, type NodeContext, type NodeDecision, type Scenario, type SimulatedNode } from './scenario.ts'
export { type Expectation, expectSimulation, shorten } from './shrink.ts'
export { type SimulationResult, simulate } from './simulate.ts'
export { SimulatedStore, type SimulatedStoreOptions, type StoreStatistics, type SyncObserver, simulatedStore } from './simulated-store.ts'
export {
  restoreTarget,
  type SpelledRoute,
  type SpellingOptions,
  type SpellingResult,
  spelledAnswer,
  spellingPolicies,
  trySpellings,
} from './spellings.ts'
export { type StoreContractOptions, storeContract, type TestRunner } from './store-contract.ts'
export type { StoreContractFixture } from './store-contract-fixture.ts'
export { type Summary, summarize } from './summary.ts'
export { VirtualTime } from './virtual-time.ts'
