package main

import "testing"

// kubernetesPromises are the sentences that an operator of Kubernetes holds trimtab to, each
// with the tests that show it. Those that need a real API server, kubelet or KEDA run in
// `make kube` and `make kubelet`.
func kubernetesPromises() map[string][]string {
	const knobs, chart = "actuator/kubernetes.", "cmd/trimtab.TestTheChartRendersForEverySetOfValuesAndRefusesAMisspeltOne"
	return map[string][]string{
		"1: an input that fails lowers no number and no limit, over 100,000 cases": {
			"planner.TestNoInputOfAClusterThatFailsLowersSizeOrNumber", "planner.TestMissingInputLowersNeitherSizeNorNumber"},
		"2: under another autoscaler nothing is written within a heartbeat, and explain names it": {
			knobs + "TestWithinAHeartbeatOfTheAppearanceOfAnAutoscalerItsTargetGetsNoWriteAndTheHoldingNamesIt", knobs + "TestUnderAnotherAutoscalerNothingIsWrittenAndItIsNamed",
			"console/view.TestExplainNamesTheHPAThatSetsTheNumberOfPods", "internal/site.TestOnARealAPIServerReplicasThatAnHPASetsAreRecommendedAndThePlanNamesIt"},
		"3: what somebody else set is left alone for foreign_hold, and a second time only recommended": {
			knobs + "TestAfterSomebodyElseChangedAValueItIsNotWrittenForTheHoldAndASecondTimeWithinTheHourIsOnlyRecommended", "actuator.TestNeitherARestartNorTheEndOfALeaseMakesAForeignValueOurs"},
		"4: every write carries uid and version; an object made again or changed gets none": {
			knobs + "TestEveryWriteCarriesUIDAndVersionAndAnObjectMadeAgainOrChangedInBetweenIsRefused"},
		"5: no effect without an entry of the journal, killed between any two steps": {
			knobs + "TestKilledBetweenAnyTwoStepsNoObjectIsChangedThatTheJournalDoesNotKnow", knobs + "TestKilledAnywhereTheJournalKnowsEveryChange"},
		"6: of two actuators the older one writes nothing after the newer one": {
			knobs + "TestOfTwoActuatorsTheOlderOneWritesNothingOnceTheNewerOneHas", "cmd/trimtab.TestAProgramThatIsStoppedForLongerThanItsLeaseActsOnNothingOld"},
		"7: restore, the Job and the end of a lease put limits back and never lower replicas": {
			knobs + "TestTheEndPutsLimitsBackAndRaisesReplicasAndLowersThemOnlyWhereDeclared", knobs + "TestARestoreThatLowersReplicasTakesNoMoreThanBudgetsAllowAtATime",
			"internal/site.TestARestoreFromTheClusterPutsLimitsBackAndKeepsARunningTrimtabFromWritingAgain", "cmd/trimtab.TestARealAPIServerTakesTheChartAndKeepsNothingOfIt"},
		"8: the sum of limits is not over the pool by trimtab's doing, in any order of events": {
			knobs + "TestTheSumIsNeverOverThePoolByWhatIsWrittenInAnyOrderOfEvents", "planner.TestNeitherThePoolNorANodeIsOverByWhatIsPlanned"},
		"9: a container without a limit is barred, nothing removes a request or limit or changes the class": {
			knobs + "TestAContainerWithoutALimitIsBarredAndWhereOneMayBeAddedARestoreSetsWhatTheNodeHas", knobs + "TestNoPatchRemovesARequestOrALimitOrWouldChangeTheClass"},
		"10: what is deferred for too long, infeasible or an error is put back with the kubelet's words": {
			knobs + "TestWhatIsDeferredForTooLongInfeasibleOrAnErrorIsPutBackWithTheKubeletsWords", knobs + "TestAnInfeasibleResizeIsHopelessAtOnceAndNotAskedForAgain"},
		"11: a resize is written once conditions are gone, the generation is observed and the limit is there": {
			knobs + "TestAResizeIsWrittenOnlyWithoutConditionsWithTheGenerationObservedAndTheLimitWithin10m"},
		"12: while a rollout runs nothing falls and no curve learns; rises go through": {
			knobs + "TestWhileARolloutRunsNothingFallsAndRisesGoThrough", "planner.TestWhileARolloutRunsNoPodIsTakenAway",
			"planner/replicas.TestWhileARolloutRunsNothingFallsAndRisesGoThrough", "analyzer/report.TestWhileARolloutRunsAReportIsATransientWhichTeachesNothing"},
		"13: a step takes no more pods than every budget allows, and none below minAvailable": {
			knobs + "TestNoStepGoesBelowAnIntegerMinAvailableOrTakesMoreThanAnyBudgetAllows", "planner.TestAStepTakesNoMorePodsThanTheFloorOfItsBudgets"},
		"14: LimitRange, quota and bounds clamp and are named; a 403 is one event": {
			knobs + "TestBoundsOfTheClusterClampAndAreNamed", knobs + "TestARefusalOfTheServerIsTriedAgainAMinuteLaterAndNotBefore", "planner.TestAQuotaClampsBeforePlanningAndIsNamedAsBinding"},
		"15: replicas count when pods are available; what does not come is given back": {
			knobs + "TestReplicasCountWhenPodsAreAvailableAndThoseThatDoNotComeAreGivenBack"},
		"16: new pods get the learnt value within 5 s, or begin with it, and none is blocked": {
			"planner.TestAnInstanceThatCameToRunGetsWhatTheOthersHaveWithinFiveSecondsOfThat", "cmd/trimtab.TestARealAPIServerIsToldWhatTrimtabDoesAndAdvises",
			"exporters/kubernetes.TestAStartValueForWhichAQuotaHasNoRoomIsLeftOut"},
		"17: the rights of each mode are those written down, without wildcards, and suffice": {
			chart, "cmd/trimtab.TestARealAPIServerTakesTheChartAndKeepsNothingOfIt", "internal/site.TestOnARealAPIServerADeploymentThatSendsSpansIsResizedThenScaled"},
		"18: all but the agent is admitted by restricted, the agent by privileged without a privilege": {
			"cmd/trimtab.TestARealAPIServerTakesTheChartAndKeepsNothingOfIt"},
		"19: blocks behavior give the replicas of the controller's own functions": {
			"planner/behavior.TestBehaviorBlocksOfATableGiveTheReplicasOfTheControllersOwnFunctions"},
		"20: GetMetrics answers an error without a valid plan, and KEDA then changes nothing": {
			"exporters/keda.TestWithKEDAsOwnCodeAgainstARealTrimtabGetMetricsAnswersAnErrorNeverANumberWithoutAValidPlan", "exporters/keda.TestOnARealAPIServerAMetricThatKEDACannotReadLeavesReplicasWhereTheyAre"},
		"21: streams say at once what is, then only changes; 1,000 of them leave nothing": {
			"exporters/keda.TestAStreamSaysAtOnceWhatIsAndEndsCleanlyWithTheExporter", "exporters/keda.TestAThousandStreamsOpenedAndDroppedLeaveNoGoroutineAndNoMemory"},
		"22: off loopback certificates of clients are required": {
			"exporters/keda.TestAListenerThatOthersReachNeedsCertificatesOfClients", "exporters/keda.TestWhoHasNoCertificateOfTheAuthorityIsNotAnswered", "config.TestAListenerForKEDAOffLoopbackNeedsCertificatesOfBothSides"},
		"23: all names of a workload resolve to it, and two are never mixed": {
			"collector/kubernetes.TestEveryNameOfAWorkloadResolvesToItAndTwoAreNeverMixed",
			"internal/site.TestSpansThatNameTheirPodInAnyWayAreThoseOfItsWorkload"},
		"24: examples of OpenSLO, Sloth and Pyrra map to PromQL, or are mistakes with their place": {
			"config.TestObjectivesOfOtherToolsBecomeQueries", "config.TestEveryQueryOfAnObjectiveIsOneThatPrometheusReads", "config.TestAnObjectiveThatHasNoMeaningHereIsAMistakeWithItsPlace"},
		"25: 30% errors and an outage: at most 50 requests a second afterwards, nothing decided on what is old": {
			"internal/site.TestAnAPIServerThatFailsAndWasAwayGetsFewRequestsAndNobodyIsLowered", "internal/kube.TestNo20SecondsHaveMoreThan400Requests", "internal/kube.TestWhatIsTooOldIsNotGivenOut"},
		"26: 1,000 workloads of 10 pods: 256 MiB, 20% of a core idle, one LIST of a kind, first holding in 30 s": {
			"lab/bench/kubernetes.BenchmarkCrowd", "internal/kube.TestEachKindIsListedOnceAndThenNothingIsAskedButWhetherTheServerLives"},
		"27: mode recommend writes nothing but events and the journal": {
			"internal/site.TestOnARealAPIServerModeRecommendWritesNothing", "internal/site.TestInModeRecommendTheClusterGetsNoWriteAndADeploymentGetsAdvice"},
		"28: check kubernetes names each missing right, API, kind and version in one run": {
			"internal/doctor.TestTheCheckOfAClusterNamesEachMissingRightAPIKindAndVersionInOneRun"},
		"29: the chart passes lint and a server's dry run for every set of values; Kustomize is what it renders": {
			chart, "cmd/trimtab.TestTheKustomizeFilesAreWhatTheChartRenders", "cmd/trimtab.TestTheBoardsAndRulesOfTheChartAreTheGeneratedOnes", "cmd/trimtab.TestARealAPIServerTakesTheChartAndKeepsNothingOfIt"},
		"30: the binary grows by at most 6 MB, --help by 10 ms, and has no typed clientset": {
			"cmd/trimtab.TestOneBinaryGrowsByAtMost6MBWithKubernetesAndHelpByAtMost10ms", "..TestTheTypedClientsetOfKubernetesIsNoPartOfTheBinary"},
		"31: annotations of a pause hold; words that lower on missing input are refused with the accepted one": {
			"actuator/kubernetes.TestPauseAnnotationsOfAWorkloadHoldFallsRisesOrBoth", "config.TestAWordThatLowersOnMissingInputIsRefusedWithTheOneThatIsAccepted"},
		"32: what another controller set last, by managedFields, is only recommended, and plans and reports name it; their size and form cost nothing": {
			knobs + "TestWhatAControllerSetLastByManagedFieldsIsOnlyRecommendedAndItIsNamed", "internal/kube.TestTheControllerThatSetAFieldLastIsNamedByItsProductWhereThatIsKnown",
			"internal/kube.TestManagedFieldsOfAnyFormCostNoObjectAndLittleMemory", knobs + "TestWhoChangedAValueThatTrimtabSetIsNamed", "console/view.TestAReportNamesAnyControllerThatHoldsAValue",
			knobs + "TestARealAPIServerResizesScalesAndRefusesAsTheKnobsExpect"},
		"33: before a fall the pods that serve the least are annotated where that is known, never over an annotation of somebody else's, and nothing stays": {
			knobs + "TestBeforeAFallThePodsThatServeTheLeastAreAnnotatedAndAfterItNothingStays", "internal/kube.TestADeletionCostOfSomebodyElseIsNeverOverwrittenAndOursIsRemovedWhole",
			knobs + "TestARestoreAndANewProcessRemoveAnnotationsOfAFallThatWasCutOff", knobs + "TestAFallDoesNotWaitForARightToAnnotatePodsAndWhatIsMissingIsSaid",
			"planner/instances.TestTheLeastLoadedAreNamedOnlyWhereTheLoadOfAllIsKnown", knobs + "TestARealReplicaSetDeletesThePodsThatServeTheLeast"},
		"34: resources of whole pods are resized where the server does it and bound those of containers, named; before that nothing is tried": {
			knobs + "TestThePodsOwnCPUIsSetWhereItsContainerHasNoLimitAndComesBack", knobs + "TestAPodsOwnRequestIsItsWeightAndHoldsThoseOfItsContainers",
			knobs + "TestTheLimitOfTheWholePodBoundsThatOfAContainerAndIsNamed", knobs + "TestBefore136NothingOfAPodWithResourcesOfItsOwnIsTriedAndTheReasonIsNamed",
			knobs + "TestOnANodeWhoseKubeletDoesNotDeclareItAPodIsNotResizedAsAWholeAndItsContainersAre",
			knobs + "TestARealAPIServerResizesAPodAsAWhole"},
		"35: a namespace is one entry: its workloads are followed, their SLOs proposed, they are recommended for and never set, and a declared one keeps its declaration": {
			"config.TestANamespaceIsEachOfItsWorkloadsWithAProposedSLOAndRecommendedOnly", "config.TestAWorkloadOfANamespaceThatIsDeclaredByNameKeepsItsDeclaration",
			"config.TestANamespaceThatCannotBeLookedUpIsAWarningAndItsKeysAreCheckedAllTheSame", "internal/site.TestANamespaceIsFollowedItsSLOsAreProposedAndItGetsAdviceAndNoWrite",
			"internal/doctor.TestTheCheckNamesTheWorkloadsOfANamespaceAndNoneOfThemIsAProblemOfTheFile", "analyzer.TestRequestsOfAWorkloadWhoseSLOIsOnlyProposedAreSummedUpAlsoAfterARestart"},
		"36: without load, as measured, pods need their minimum, their number and requests fall to bounds and come back with the load, requests also without knowledge; a load that is missing lowers nothing": {
			"analyzer.TestPodsOfWhoseUseNothingIsToldLetGoAfterAWhileOfMeasuredZeroLoad", "analyzer.TestAMeasuredZeroOfLoadLetsGoWhatAWorkloadWithoutUseHolds",
			"planner.TestWithoutLoadTheNumberOfPodsFallsToItsMinimumAndComesBackWithTheLoad",
			"planner.TestWithoutLoadRequestsFallToTheirBoundInOneStepAndComeBackWithTheLoadOrWithoutKnowledge",
			"internal/site.TestWithoutMeasuredUsePodsLetGoOnlyWhereTheirMinimumIsKnownToBeEnough"},
		"37: DaemonSets are sized and Rollouts of Argo sized and scaled as other workloads are, and nothing of a Rollout falls while it runs": {
			knobs + "TestThePodsOfADaemonSetAreResizedByTheirRequests", knobs + "TestARolloutIsScaledAndItsPodsAreResizedAndNothingFallsWhileItRuns",
			"internal/kube.TestPodsOfADaemonSetAndOfARolloutAreThoseOfTheirWorkloadAndItsRolloutIsSeen",
			"internal/kube.TestAnAutoscalerOfARolloutIsItsOwnAndOneOfADeploymentOfTheNameIsNot",
			"config.TestDaemonSetsAndRolloutsAreNamedAndADaemonSetHasNoNumber"},
	}
}

func TestEveryPromiseToAnOperatorOfKubernetesHasItsTests(t *testing.T) {
	if n := len(kubernetesPromises()); n != 37 {
		t.Errorf("%d sentences, want 37", n)
	}
	haveTests(t, kubernetesPromises())
}
