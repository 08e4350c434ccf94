export { type AdapterContractOptions, adapterContract } from './adapter-contract/adapter-contract.ts'
export type { AdapterServer, AdapterServerOptions, AdapterUnderTest, TrustedProxy } from './adapter-contract/context.ts'
export { type HandlerLimit, type HandlerSurroundings, handlerUnderTest } from './adapter-contract/handler-under-test.ts'
export { peekThrice } from './adapter-contract/peeking.ts'
export {
  restoreTarget,
  type SpelledRoute,
  type SpellingOptions,
  type SpellingResult,
  spelledAnswer,
  spellingPolicies,
  trySpellings,
} from './adapter-contract/spellings.ts'
export { type AlgorithmContractOptions, algorithmContract } from './algorithm-contract/algorithm-contract.ts'
export type { AlgorithmModel, AlgorithmUnderTest } from './algorithm-contract/model.ts'
export { type Balancing, type BalancingContext, moving, type Picker, roundRobin, sticky, uniform, zipf } from './load/balancing.ts'
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
} from './load/load.ts'
export { type Figures, figuresOf } from './measure/figures.ts'
export type { IntervalMeasure } from './measure/ledger.ts'
export { FixedReference, type Reference, SlidingReference } from './measure/reference.ts'
export { type Summary, summarize } from './measure/summary.ts'
export { crashes, doubling, type Fault, type FaultPlan, faults, type OutageMode, outages, restarts } from './network/fault.ts'
export { type FaultProxy, type FaultProxyOptions, faultProxy } from './network/fault-proxy.ts'
export type { NetworkOptions } from './network/network.ts'
export type { ProxyFaults } from './network/proxy-faults.ts'
export { type Distribution, exponentialAbove, logNormal, uniformBetween, WeightedIndex, zipfWeights } from './random/distribution.ts'
export { SeededRandom } from './random/random.ts'
export { type RulesSourceFixture, rulesSourceContract } from './rules-source-contract/rules-source-contract.ts'
export { describeScenario, type NodeContext, type NodeDecision, type Scenario, type SimulatedNode } from './simulation/scenario.ts'
export { type Expectation, expectSimulation, shorten } from './simulation/shrink.ts'
export { type SimulationResult, simulate } from './simulation/simulate.ts'
export type { StoreContractFixture } from './store-contract/fixture.ts'
export { type StoreContractOptions, storeContract, type TestRunner } from './store-contract/store-contract.ts'
export { type Lies, lyingStore, mutated, NONSENSE } from './stores/lying-store.ts'
export {
  SimulatedStore,
  type SimulatedStoreOptions,
  type StoreStatistics,
  type SyncObserver,
  simulatedStore,
} from './stores/simulated-store.ts'
export { ManualClock, manualClock, NodeClock, type NodeClockOptions } from './time/manual-clock.ts'
export { VirtualTime } from './time/virtual-time.ts'
export type { WaitingFixture, WaitingUnderTest } from './waiting-contract/subject.ts'
export { type WaitingContractOptions, waitingContract } from './waiting-contract/waiting-contract.ts'
