package main

import "time"

// promise is one of the reliability or security that trimtab is held to.
type promise struct {
	id, sentence string
	tests        []test
	// not is what of it nobody tries here, with the reason.
	not []string
	// p99 is the longest that the slowest of a hundred cases may take.
	p99 time.Duration
}

// test shows a promise, or a part of it.
type test struct {
	pkg, name string
	// full is the number of cases that the promise states, 0 where the test
	// has cases of its own.
	full int
	// rapid says that cases are those of pgregory.net/rapid.
	rapid bool
	// once and each are how long the test took on two busy cores,
	// whatever the number of cases and for each of them.
	once, each time.Duration
}

const (
	second = time.Second
	ms     = time.Millisecond
	us     = time.Microsecond
)

// all are the promises in their order.
func all() []promise {
	return []promise{
		{id: "R1", sentence: "the kill of any stage is harmless: no decision lost, none carried out twice", p99: 2 * second,
			tests: []test{
				{pkg: "./cmd/trimtab", name: "TestAKilledStageLosesNoDecisionAndCarriesNoneOutTwice", full: 4 * 200, once: 15 * second, each: 4 * second},
				{pkg: "./cmd/trimtab", name: "TestAKilledProgramLosesNoDecisionAndCarriesNoneOutTwice", full: 200, once: 40 * second, each: 10 * second}},
			not: []string{"the next decision within 2 rounds is printed and not judged: where the planner itself is killed it waits for the end of its lock, 6 s: more than 2 of the tests' rounds (1 s), less than 2 of the default rounds (5 s)"}},
		{id: "R2", sentence: "a NATS restart is harmless: nothing lost, nothing twice", p99: 5 * second, tests: []test{
			{pkg: "./bus/natsbus", name: "TestAServerThatIsKilledLosesAndRepeatsNothing", full: 200, once: 20 * second, each: 3 * second}}},
		{id: "R3/R4", sentence: "a rolled back, wiped or corrupted store costs time, never safety", tests: []test{
			{pkg: "./bus/natsbus", name: "TestAStoreThatIsWipedOrRolledBackCostsTimeOnly", full: 120, once: 20 * second, each: 5 * second},
			{pkg: "./bus/natsbus", name: "TestADamagedStoreCostsTimeAndBoundedMemory", full: 200, once: 20 * second, each: 2 * second},
			{pkg: "./cmd/trimtab", name: "TestAWipedRolledBackOrCorruptStoreLetsPlanningGoOnUnderALaterEpoch", full: 320, once: 15 * second, each: 5 * second}},
			not: []string{"convergence within 2 rounds is printed (p99, from a start to a plan that is accepted) and not judged: see R1"}},
		{id: "R5", sentence: "a partition is safe: held until the lease ends, baselines by the lease + 1 s", p99: second, tests: []test{
			{pkg: "./cmd/trimtab", name: "TestACutLinkEndsInTheBaselinesWhenTheLeaseEnds", full: 15, once: 20 * second, each: 90 * second},
			{pkg: "./cmd/trimtab", name: "TestACutLinkOfAnyHostIsSafe", full: 60, once: 60 * second, each: 110 * second}}},
		{id: "R6", sentence: "clocks may jump: leases run on the monotonic clock, no stale leader acts, no panic", tests: []test{
			{pkg: "./cmd/trimtab", name: "TestAProgramThatIsStoppedForLongerThanItsLeaseActsOnNothingOld", full: 10, once: 40 * second, each: 70 * second},
			{pkg: "./cmd/trimtab", name: "TestAPlannerThatWasStoppedHasNoEffectWhenItGoesOn", full: 10, once: 20 * second, each: 70 * second},
			{pkg: "./actuator", name: "TestStepsOfTheWallClockNeitherEndNorStretchALease", once: 5 * second},
			{pkg: "./actuator", name: "TestAnEpochThatWasAcceptedWhileTheClockWasAheadLocksNobodyOut", once: 5 * second},
			{pkg: "./actuator", name: "TestAPauseByAClockThatWasAheadCanBeEnded", once: 5 * second},
			{pkg: "./actuator", name: "TestTheWatchdogRestoresForAnActuatorThatIsStopped", once: 10 * second},
			{pkg: "./actuator", name: "TestAnActuatorThatWasStoppedInThePlanDoesNotFinishItLate", once: 5 * second},
			{pkg: "./pipeline", name: "TestTheClockOfAStageNeverGoesBackAndNeverStands", once: 5 * second},
			{pkg: "./bus/natsbus", name: "TestACommandIsCarriedOutWhateverTheClocksOfTheHostsSay", once: 10 * second}}},
		{id: "R7", sentence: "duplicate, reordered, late and corrupt messages change no decision", tests: []test{
			{pkg: "./internal/e2e", name: "TestDisorderChangesNoByteOfAnyDecision", full: 1_000_000, once: 10 * second, each: 4 * ms},
			{pkg: "./planner", name: "TestOrderAndRepetitionInsideARoundChangeNothing", full: 10_000, rapid: true, once: 5 * second, each: 5 * ms},
			{pkg: "./pipeline", name: "TestDuplicatesAndOrderChangeNoOutput", once: 5 * second},
			{pkg: "./cmd/trimtab", name: "TestJunkOnTheBusIsPutAsideCountedAndChangesNothing", once: 30 * second}}},
		{id: "R8", sentence: "decoders are total: no panic, no input over 1 s, at most 64 MiB",
			not: []string{"fuzzing is `make fuzz FUZZTIME=10m`"}},
		{id: "R9/R10", sentence: "absent data lowers nobody, nothing that is not finite is published", tests: []test{
			{pkg: "./planner", name: "TestAbsentDataLowersNobody", full: 100_000, rapid: true, once: 5 * second, each: 10 * ms},
			{pkg: "./cmd/trimtab", name: "TestAbsentPrometheusDataOfAnyKindLowersNobodyAndTheReasonIsShown", once: 60 * second},
			{pkg: "./cmd/trimtab-lab", name: "TestNobodyIsLoweredByASignalThatFailsOrThatReturns", once: 60 * second}}},
		{id: "R11", sentence: "no flapping: no action inside +/-10%, at most one reversal per 300 s", tests: []test{
			{pkg: "./planner/guard", name: "TestNoFlapping", full: 100, once: 5 * second, each: 100 * ms}}},
		{id: "R12", sentence: "bounded blast radius: at most -20% a step and 25% of the targets a round", tests: []test{
			{pkg: "./planner/guard", name: "TestABlastIsBounded", full: 100_000, rapid: true, once: 5 * second, each: ms},
			{pkg: "./planner/guard", name: "TestADemandThatDropsToNothingLowersAFewALittleEachRound", once: 2 * second},
			{pkg: "./actuator", name: "TestNoHostilePlanCutsDeeperThanTheLimits", full: 100_000, rapid: true, once: 5 * second, each: 5 * ms}}},
		{id: "R13", sentence: "pause freezes every knob at once and keeps leases alive", p99: second, tests: []test{
			{pkg: "./cmd/trimtab", name: "TestPauseFreezesEveryKnobAndKeepsLeasesAlive", full: 100, once: 30 * second, each: 5 * second},
			{pkg: "./bus/natsbus", name: "TestPauseWhileTheBusIsDownIsRefusedAtOnceAndNeverFiresLater", once: 10 * second}}},
		{id: "R14", sentence: "a planner that dies in mid-plan leaves nobody over capacity", tests: []test{
			{pkg: "./planner", name: "TestTheSumNeverExceedsTheCapacity", full: 10_000, rapid: true, once: 5 * second, each: 20 * ms},
			{pkg: "./actuator", name: "TestAPlanThatIsCutOffAnywhereIsFinishedOrCompensated", full: 10_000, once: 5 * second, each: 20 * ms},
			{pkg: "./actuator", name: "TestTheSumNeverRisesOverTheCapacityNotEvenInBetween", full: 10_000, rapid: true, once: 5 * second, each: 10 * ms},
			{pkg: "./actuator", name: "TestWhatWasTakenForAPlanThatNeverGoesOnIsGivenBack", once: 5 * second},
			{pkg: "./planner", name: "TestALostAnswerKeepsItsReservation", once: 5 * second}}},
		{id: "R15", sentence: "an actuator that dies leaves no host stuck", p99: 2 * second, tests: []test{
			{pkg: "./actuator", name: "TestAKilledActuatorIsRestoredFromItsJournal", full: 200, once: 10 * second, each: second},
			{pkg: "./actuator/cgroup", name: "TestAnActuatorAndAWatchdogKilledInAnyOrderLeaveTheBaselines", full: 200, once: 10 * second, each: 3 * second},
			{pkg: "./cmd/trimtab", name: "TestAKilledProgramIsRestoredAsByExecStopPost", full: 200, once: 60 * second, each: 4 * second},
			{pkg: "./cmd/trimtab", name: "TestTheWatchdogRestoresWhenTheLeaseOfAKilledProgramEnds", once: 60 * second}}},
		{id: "R16", sentence: "split brain is fenced: no effect of a stale epoch", p99: 12 * second, tests: []test{
			{pkg: "./actuator", name: "TestOfTwoLeadersOnlyTheNewerHasEffects", full: 1000, once: 5 * second, each: 10 * ms},
			{pkg: "./pipeline", name: "TestOneLeaderAndAHigherEpochAfterIt", once: 5 * second},
			{pkg: "./pipeline", name: "TestALeaderThatCannotRenewIsSilentBeforeAnotherLeads", once: 5 * second},
			{pkg: "./pipeline", name: "TestALeaderUnderCPUStarvationDoesNotLoseItself", once: 60 * second},
			{pkg: "./cmd/trimtab", name: "TestAKilledPlannerIsReplacedByTheOneThatStandsBy", full: 100, once: 60 * second, each: 10 * second}}},
		{id: "R17", sentence: "a full disk, I/O errors and torn writes leave every file readable and restore working", tests: []test{
			{pkg: "./actuator", name: "TestFaultsOfTheDiskLeaveEveryBaselineToBeRestored", full: 1000, once: 5 * second, each: 50 * ms},
			{pkg: "./internal/hostfs", name: "TestTornWritesLeaveTheOldValueOrTheNew", once: 5 * second},
			{pkg: "./internal/hostfs", name: "TestAFullDiskStopsNothing", once: 5 * second},
			{pkg: "./actuator", name: "TestRestoreWorksOnAFullDisk", once: 5 * second},
			{pkg: "./actuator", name: "TestAFlippedBitAnywhereInTheJournalStillRestores", once: 30 * second},
			{pkg: "./actuator", name: "TestWithBothCopiesCutAnywhereARestoreIsRightOrSaysThatItCannotKnow", once: 30 * second},
			{pkg: "./cmd/trimtab", name: "TestADiskThatBecomesFullChangesNothingWithoutAJournalAndRestores", once: 60 * second},
			{pkg: "./cmd/trimtab", name: "TestADamagedJournalRestoresWhatIsReadableAndSaysSo", once: 60 * second},
			{pkg: "./cmd/trimtab", name: "TestFilesThatAreSpoiltAroundKilledAndStoppedProcessesHarmNobody", full: 300, once: 20 * second, each: 6 * second}}},
		{id: "R18", sentence: "overload is shed and counted: received = processed + queued + shed", tests: []test{
			{pkg: "./cmd/trimtab", name: "TestAfterABurstEverySpanIsAccountedFor", full: 6000, once: 30 * second, each: 200 * ms}},
			not: []string{"the memory of each stage by itself: all four are in one process, which may have 4 x 256 MiB"}},
		{id: "R19", sentence: "poison spans harm nobody else", p99: second, tests: []test{
			{pkg: "./analyzer/path", name: "TestAHugeTraceOfAnyShapeIsAnalysedWhole", full: 120, once: 5 * second, each: 300 * ms},
			{pkg: "./analyzer/path", name: "TestBrokenSpansAreFlaggedByKindAndChangeNoOtherTrace", once: 2 * second},
			{pkg: "./cmd/trimtab", name: "TestPoisonSpansHarmNobodyElse", once: 60 * second}}},
		{id: "R20/S2", sentence: "forged and replayed plans stay within the host's own limits and lock nobody out", tests: []test{
			{pkg: "./actuator", name: "TestNoForgedOrReplayedPlanGetsPastTheHostsOwnBounds", full: 100_000, once: 10 * second, each: 300 * us}}},
		{id: "R21", sentence: "Kubernetes misbehaves, or HPA, KEDA or VPA own the target", tests: []test{
			// A case is a second of the outage.
			{pkg: "./internal/site", name: "TestAnAPIServerThatFailsAndWasAwayGetsFewRequestsAndNobodyIsLowered", full: 300, once: 60 * second, each: second},
			{pkg: "./actuator/kubernetes", name: "TestWithoutPlansBaselinesAreBackByTheEndOfTheLeaseThoughTheServerFails", full: 200, once: 2 * second, each: 500 * ms},
			{pkg: "./actuator/kubernetes", name: "TestKilledBetweenAnyTwoStepsNoObjectIsChangedThatTheJournalDoesNotKnow", full: 200, once: 2 * second, each: 80 * ms},
			{pkg: "./actuator/kubernetes", name: "TestOfTwoActuatorsTheOlderOneWritesNothingOnceTheNewerOneHas", full: 1_000, once: 2 * second, each: 180 * ms},
			{pkg: "./actuator/kubernetes", name: "TestTheSumIsNeverOverThePoolByWhatIsWrittenInAnyOrderOfEvents", full: 500, once: 2 * second, each: 500 * ms},
			{pkg: "./actuator/kubernetes", name: "TestUnderAnotherAutoscalerNothingIsWrittenAndItIsNamed", once: 2 * second},
			{pkg: "./planner", name: "TestNoInputOfAClusterThatFailsLowersSizeOrNumber", full: 100_000, once: 2 * second, each: 5 * ms}},
			not: []string{"the API server is one in memory; `make kube` has a real one, and `make kubelet` a real node"}},
		{id: "R22", sentence: "small, without leaks: an agent of 100 cgroups, a case is a minute", tests: []test{
			{pkg: "./cmd/trimtab", name: "TestAnAgentOfAHundredCgroupsStaysSmall", full: 480, once: 40 * second, each: 60 * second}},
			not: []string{"all stages in one process: `go run ./lab/bench/small --groups 100 --round 1s --spans 600 --for 8h` prints figures and does not judge"}},
		{id: "R23", sentence: "reproducible: three replays give the same bytes", tests: []test{
			{pkg: "./cmd/trimtab", name: "TestALoadedSiteIsTracedAndItsRecordingGivesTheSameBytes", once: 60 * second}}},
		{id: "R24", sentence: "right by default on real services",
			not: []string{"`make bench-real` takes an hour and a machine of its own"}},
		{id: "R25", sentence: "ready means working", tests: []test{
			{pkg: "./pipeline", name: "TestA.*IsNotReady.*", once: 10 * second},
			{pkg: "./cmd/trimtab", name: "TestAFullDiskIsNotReadyWithTheReasonAndReadyAfterARestartWithRoom", once: 30 * second}}},
		{id: "R26", sentence: "a fleet is never over: no host and no pool over capacity", tests: []test{
			// About 490 instants a case, so that these are more than 10^6.
			{pkg: "./planner", name: "TestAFleetIsNeverOverACapacityWhateverDies", full: 2_500, once: 5 * second, each: 60 * ms},
			{pkg: "./planner", name: "TestAHostThatLiesOfItselfLowersNobodyElse", once: 5 * second},
			{pkg: "./planner", name: "TestAHostThatFlapsMovesNobodyToAndFroMoreThanOnce", once: 5 * second},
			{pkg: "./cmd/trimtab", name: "TestTheClusterScriptKeepsItsPromisesWhileThingsDie", once: 120 * second}},
			not: []string{"10^6 instants of real processes: the script's limits are read some 40 times a second; hosts that lie are tried in memory"}},
		{id: "R27", sentence: "every move is judged: harmful ones are taken back", tests: []test{
			{pkg: "./planner", name: "TestAMoveThatHarmedIsTakenBackInTheNextRoundAndGoodOnesStay", full: 10_000, once: 5 * second, each: 2 * ms}}},
		{id: "R30", sentence: "a partial answer is missing: a store that is away, a federation that is cut off", tests: []test{
			{pkg: "./collector/prometheus", name: "TestAPartialAnswerIsMissing", once: 2 * second},
			{pkg: "./collector/prometheus", name: "TestNoStoreThatIsAwayMakesALoadFall", once: 2 * second},
			{pkg: "./collector/prometheus", name: "TestALoadOfWhichAPartIsCutOffIsMissingAndNeverAFall", once: 2 * second},
			{pkg: "./collector/prometheus", name: "TestManyTargetsThatAreDownAreAllMissed", once: 2 * second},
			{pkg: "./cmd/trimtab", name: "TestAbsentPrometheusDataOfAnyKindLowersNobodyAndTheReasonIsShown", once: 60 * second}},
			not: []string{"stores of a real Thanos and a real cluster of VictoriaMetrics: their answers are played to the byte"}},
		{id: "S1", sentence: "a stage can use only its own subjects", tests: []test{
			{pkg: "./internal/cluster", name: "TestARoleIsDeniedEverythingThatTheTableDoesNotGiveIt", once: 10 * second},
			{pkg: "./internal/cluster", name: "TestNobodyButThePlannerPublishesWhatItReadsFromAStream", once: 2 * second},
			{pkg: "./internal/cluster", name: "TestAnAnswerOfABucketIsNoPlan", once: 5 * second},
			{pkg: "./internal/cluster", name: "TestALeafNodeIsHeldToTheRoleOfItsHost", once: 10 * second},
			{pkg: "./internal/cluster", name: "TestTheConsumerOfAHostCannotBeGuessedByAnother", once: 5 * second},
			{pkg: "./internal/cluster", name: "TestNobodyButAnAgentJoinsAsALeafNode", once: 5 * second},
			{pkg: "./cmd/trimtab", name: "TestAProcessWithTheCertificateOfAnotherRoleSaysAtItsStartWhatItMayNot", once: 10 * second}}},
		{id: "S3", sentence: "the webhook needs its token", tests: []test{
			{pkg: "./collector/alertmanager", name: "TestWithoutTheTokenNothingGoesOn", once: 5 * second},
			{pkg: "./collector/alertmanager", name: "TestAChangedTokenIsInForceAtOnceAndALostOneLetsNobodyIn", once: 5 * second},
			{pkg: "./cmd/trimtab", name: "TestTheWebhookAsksForItsTokenWhateverTheHost", once: 20 * second}}},
		{id: "S4", sentence: "an alert asks for a plan and never dictates one, at most once per 10 s and group", tests: []test{
			{pkg: "./planner", name: "TestAlertsStartAtMostOneRoundPerGapAndGroup", full: 10_000, rapid: true, once: 5 * second, each: 5 * ms},
			{pkg: "./planner", name: "TestAnAlertAsksAndNeverDictates", full: 10_000, rapid: true, once: 5 * second, each: 5 * ms}}},
		{id: "S5", sentence: "sizes are bounded: a bomb is refused in little memory", p99: second, tests: []test{
			{pkg: "./collector/alertmanager", name: "TestBombsAreRefusedInLittleMemory", once: 10 * second},
			{pkg: "./collector/otlp", name: "TestABombIsAnsweredAndMemoryStaysBounded", full: 160, each: 200 * ms, once: 10 * second},
			{pkg: "./cmd/trimtab", name: "TestHostileRequestsAreAnsweredCountedAndBounded", once: 60 * second}}},
		{id: "S6", sentence: "slow clients delay nobody", p99: second, tests: []test{
			{pkg: "./exporters/keda", name: "TestAThousandStreamsOpenedAndDroppedLeaveNoGoroutineAndNoMemory", full: 2000, each: 300 * ms, once: 5 * second},
			{pkg: "./collector/otlp", name: "TestAThousandSlowClientsDoNotStopOthersAndAreCutOff", full: 100, each: 10 * ms, once: 30 * second},
			{pkg: "./collector/otlp", name: "TestAGRPCStreamThatTricklesItsBodyIsCutOff", once: 30 * second},
			{pkg: "./collector/alertmanager", name: "TestSlowSendersAreCutOffAndHoldUpNobody", once: 10 * second},
			{pkg: "./console", name: "TestClientsThatDoNotReadHoldBoundedMemoryAndKeepNobodyFromSmallAnswers", once: 10 * second}}},
		{id: "S7", sentence: "nothing listens off loopback by default", tests: []test{
			{pkg: "./config", name: "TestTheDefaultListensOnLoopbackOnly", once: 5 * second},
			{pkg: "./cmd/trimtab", name: "TestOnlyLoopbackIsListenedOnByDefault", once: 20 * second}}},
		{id: "S8", sentence: "a page elsewhere can neither read nor command", tests: []test{
			{pkg: "./console", name: "TestForeignHostsAndOriginsAreRefused", once: 5 * second},
			{pkg: "./console", name: "TestAPageElsewhereCannotHoldStreamsOrAskTheAPI", once: 5 * second},
			{pkg: "./cmd/trimtab", name: "TestTheWebServerRefusesWhatAPageElsewhereCouldSend", once: 30 * second}}},
		{id: "S9", sentence: "TLS is of version 1.2 at least", tests: []test{
			{pkg: "./collector/otlp", name: "TestTLSIsSpokenOnBothAndOldVersionsAreRefused", once: 5 * second},
			{pkg: "./exporters/otlp", name: "TestTLSEndpointsAreVerified", once: 5 * second},
			{pkg: "./cmd/trimtab", name: "TestTheWebhookTakesClientCertificatesAndBasicAuthOfTheWebConfiguration", once: 20 * second}}},
		{id: "S10", sentence: "no request is led elsewhere", tests: []test{
			{pkg: "./collector/prometheus", name: "TestNoRedirectLeadsElsewhere", once: 5 * second}}},
		{id: "S11", sentence: "no path escapes its root", tests: []test{
			{pkg: "./internal/hostfs", name: "TestNothingOutsideADeclaredRootIsReadOrWritten", once: 5 * second},
			{pkg: "./internal/hostfs", name: "TestAMountBelowTheRootIsNotCrossed", once: 5 * second},
			{pkg: "./actuator/cgroup", name: "TestAPathOutsideTheRootIsRefused", once: 5 * second}}},
		{id: "S12", sentence: "no label value escapes its string in PromQL", tests: []test{
			{pkg: "./config", name: "TestNoLabelValueEscapesItsString", full: 100_000, rapid: true, once: 5 * second, each: 100 * us}}},
		{id: "S13", sentence: "no secret is in any output", tests: []test{
			{pkg: "./config", name: "TestNoFormOfPrintingShowsASecret", once: 5 * second},
			{pkg: "./internal/scrub", name: "TestScrubbingLeavesNoSecretAndNoLessThanTheRest", once: 5 * second},
			{pkg: "./cmd/trimtab", name: "TestADebugBundleHasEverythingButSecrets", once: 20 * second},
			{pkg: "./cmd/trimtab", name: "TestNoMessageShowsTheUserOrPasswordOfAnAddress", once: 20 * second},
			{pkg: "./internal/cluster", name: "TestPrivateKeysAreForTheirOwnerOnly", once: 5 * second},
			{pkg: "./internal/cluster", name: "TestAnAgentThatIsCutOffSaysWhatGoesOnAndWhatToDo", once: 30 * second},
			{pkg: "./bus/natsbus", name: "TestATokenInAURLIsNotShown", once: 5 * second}}},
		{id: "S14", sentence: "collector, analyzer and planner need neither root nor a capability; the actuator what its knobs need", tests: []test{
			{pkg: "./cmd/trimtab", name: "TestNoUnitHasACapabilityAndTheOneThatOnlyWatchesMayTurnNothing", once: 5 * second},
			{pkg: "./internal/cluster", name: "TestSystemdVerifiesTheUnitsAndCentralStagesHaveNoPrivilege", once: 5 * second},
			{pkg: "./cmd/trimtab", name: "TestSystemdRatesTheUnitsAsLittleExposed", once: 5 * second},
			{pkg: "./cmd/trimtab", name: "TestTheUnitsCommandsActOnRealGroupsWithoutAnyCapabilityAndRestoreAfterAKill", once: 60 * second}}},
		{id: "S15", sentence: "RBAC without wildcards or secrets", tests: []test{
			{pkg: "./cmd/trimtab", name: "TestTheChartRendersForEverySetOfValuesAndRefusesAMisspeltOne", once: 20 * second},
			{pkg: "./cmd/trimtab", name: "TestARealAPIServerTakesTheChartAndKeepsNothingOfIt", once: 120 * second}}},
	}
}
