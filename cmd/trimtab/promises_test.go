package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/console/view"
)

// easeOfUse are the sentences on ease of use that trimtab is held to, each with the
// tests that show it. What the sentence says of times is measured by the benchmark.
func easeOfUse() map[string][]string {
	return map[string][]string{
		"U1: the demo runs without configuration, root or network":                        {"cmd/trimtab.TestTheDemoKeepsToTheCapacityAndRestoresTheLimits"},
		"U1: a first recommendation with one's own Prometheus in 5 min and 15 lines":      {"cmd/trimtab.TestTheFirstRecommendationFromOnesOwnPrometheus"},
		"U1: a first recommendation from README alone":                                    {"cmd/trimtab.TestADraftOfWhatIsThereIsAConfigurationThatRuns", "cmd/trimtab.TestEveryCommandOfTheReadmeRunsAsPrinted"},
		"U2: every command has help with an example":                                      {"cmd/trimtab.TestEveryVisibleCommandHasHelpAndAnExampleThatStartsWithIt"},
		"U2: every command is completed":                                                  {"cmd/trimtab.TestBashCompletesCommandsFlagsValuesFilesAndRunningWorkloads", "cmd/trimtab.TestFishCompletesTheSame", "cmd/trimtab.TestZshCompletesOnATerminal"},
		"U2: help takes at most 100 ms":                                                   {"cmd/trimtab.BenchmarkHelp"},
		"U2: what takes more than 2 s shows progress":                                     {"internal/cli.TestWithoutATerminalALineNowAndThenTellsHowFarALongRunIs"},
		"U3: inputs with age, rule, bounds, alternatives and next check of each decision": {"console/view.TestExplainTellsTheDecisionItsReasonAndWhatCameOfIt", "cmd/trimtab.TestU3ExplainPrintsInputsWithAgeRuleBoundsAlternativesAndNextCheck"},
		"U3: explain takes at most 200 ms over 100,000 decisions":                         {"cmd/trimtab.BenchmarkExplain"},
		"U4: wrong configurations are answered with file, line, column and hint":          {"config.TestBadFilesAreAnsweredWithPlaceAndHint", "config.TestEveryHintThatNamesWhatToWriteMendsItsMistake"},
		"U4: an unknown key is answered with the nearest":                                 {"config.TestU4AKeyThatIsMisspeltIsAnsweredAtItsPlaceWithTheNearest"},
		"U4: a file that is not there is a mistake":                                       {"config.TestU4AFileThatIsNamedAndIsNotThereIsAMistakeAtItsPlace"},
		"U5: metrics are clean for promlint":                                              {"internal/metric.TestEveryMetricIsLintCleanAndNamedOnce", "cmd/trimtab.TestMetricsOfARunningSiteAreLintClean"},
		"U5: rules are clean for promtool":                                                {"dashboards.TestPromtoolFindsTheRulesGood"},
		"U5: each alert has a firing and a quiet test, and a page":                        {"dashboards.TestEveryAlertFiresAndIsQuietWhereItsTestsSaySo", "dashboards.TestEveryAlertIsNamedExplainedAndHasItsPage"},
		"U6: every panel returns data":                                                    {"cmd/trimtab.TestEveryPanelShowsWhatARealPrometheusScraped"},
		"U6: every panel has a unit":                                                      {"dashboards.TestEveryPanelHasAUnitADescriptionAndTheChosenDatasource"},
		"U7: pages of 1,000 workloads in 1 s":                                             {"console.TestEveryPageOfAThousandWorkloads"},
		"U7: 300 KiB for the first view, nothing from elsewhere, keyboard and 360 px":     {"console.TestTheConsoleInABrowser", "console.TestTheConsoleAsPeopleUseIt"},
		"U8: an HPA's block behavior is taken as it is":                                   {"planner.TestTheBlockBehaviorIsObeyedInThePlan", "planner/behavior.TestBehaviorBlocksOfATableGiveTheReplicasOfTheControllersOwnFunctions"},
		"U8: KEDA's words for a fallback are taken as they are":                           {"config.TestAWordThatLowersOnMissingInputIsRefusedWithTheOneThatIsAccepted", "sim/autoscale.TestTheFallbackOfKEDAIsAsItsWordsSay"},
		"U8: files of OpenSLO, Sloth and Pyrra are read":                                  {"config.TestObjectivesOfOtherToolsBecomeQueries", "config.TestAWorkloadTakesItsSLOFromAFile"},
	}
}

func TestEveryPromiseOnEaseOfUseHasItsTests(t *testing.T) { haveTests(t, easeOfUse()) }

// haveTests reports sentences that name a test, FOLDER.NAME, which is not there.
func haveTests(t *testing.T, promises map[string][]string) {
	t.Helper()
	for sentence, tests := range promises {
		for _, test := range tests {
			dot := regexp.MustCompile(`^(.*)\.(\w+)$`).FindStringSubmatch(test)
			names, _ := filepath.Glob(filepath.Join("../..", dot[1], "*_test.go"))
			declared, found := regexp.MustCompile(`(?m)^func `+dot[2]+`\(`), false
			for _, name := range names {
				b, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				found = found || declared.Match(b)
			}
			if !found {
				t.Errorf("%s: there is no %s", sentence, test)
			}
		}
	}
}

func TestU3ExplainPrintsInputsWithAgeRuleBoundsAlternativesAndNextCheck(t *testing.T) {
	var out strings.Builder
	printExplanation(&out, &view.Explanation{
		Workload: "shop", Decided: view.Decided{Decision: "raised from 1 to 2", Plan: "1-2"}, Condition: view.Condition{State: "ok", Resource: "cpu"},
		Evidence: view.Evidence{Inputs: []trimtab.Input{{Name: "load", Value: 12, Age: 1.5, Source: "spans"}}},
		Choice: view.Choice{
			Bounds: []float64{0.8, 0.95}, Binding: trimtab.Binding{Kind: codes.BindingCapacity, Detail: "the pool has no more"},
			Alternatives: []trimtab.Alternative{{Set: 3, Objective: 0.7, Why: "worse for search"}},
			NextCheck:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local),
		},
	})
	for _, want := range []string{"raised from 1 to 2", "12 requests/s, 1.5 s old, from spans", "the pool has no more", "0.8", "0.95", "3 cores: objective 0.7 (worse for search)", "03:04:05"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
