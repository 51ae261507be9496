package main

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestTheCapacityIsTheHighestRateWithEnoughInTime(t *testing.T) {
	for _, edge := range []float64{55, 80, 109} {
		got, err := capacity(50, 110, func(rate float64) (float64, error) {
			if rate <= edge {
				return 1, nil
			}
			return 0.98, nil
		})
		if err != nil || got > edge || got < edge/1.04 {
			t.Errorf("%v, %v, want %v to within 4%%", got, err, edge)
		}
	}
	if got, err := capacity(50, 110, func(float64) (float64, error) { return 0, nil }); got != 50 || err != nil {
		t.Errorf("%v, %v, want the lowest where all are too high", got, err)
	}
	want := errors.New("no")
	if _, err := capacity(50, 110, func(float64) (float64, error) { return 0, want }); !errors.Is(err, want) {
		t.Error(err)
	}
}

func TestASweepFindsTheLowestOfTheBestLimits(t *testing.T) {
	all, best, err := sweep([]int{1, 2, 4, 8}, func(limit int) (float64, error) { return math.Min(float64(limit), 4), nil })
	if err != nil || best != 4 || len(all) != 4 || all[3] != (tried{8, 4}) {
		t.Errorf("%v, %v, %v", all, best, err)
	}
}

func TestTheVerdictNamesWhoIsBestAndWhetherAProxyIsWorthIt(t *testing.T) {
	one, half := 1.0, 0.5
	r := &result{about: about{Service: "node"}, Load: 2, Rows: []row{
		{Name: rowNothing, figures: figures{Goodput: 0.1, Critical: &half}},
		{Name: rowHAProxy, figures: figures{Goodput: 0.90, Critical: &one}},
		{Name: rowEnvoy, figures: figures{Goodput: 0.92, Critical: &half}},
		{Name: rowGate, Missing: "this trimtab has no gate"},
	}}
	got := strings.Join(verdict([]*result{r}), "\n")
	for _, want := range []string{"most in time by envoy, haproxy (0.92", "critical requests by haproxy (100.0% in time)", "without a proxy 0.10"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if verdict([]*result{{Rows: []row{{Name: rowNothing}}}}) != nil {
		t.Error("a row alone has a verdict")
	}
}

func TestFlagsThatMakeNoSenseAreErrors(t *testing.T) {
	for _, bad := range []string{"--service x", "--row x", "--load 0", "--load a", "--maxconn 0", "--seconds 0", "--within 0s", "--time-out 1ms", "--retries -1", "--learn 0s",
		"--cores 0", "--cost 0s", "--capacity -1", "--capacity 9", "-o xml", "more"} {
		if _, err := parse(strings.Fields(bad)); err == nil {
			t.Errorf("%s passed", bad)
		}
	}
	o, err := parse(nil)
	if err != nil || len(o.Services) != 3 || len(o.Rows) != 7 || o.Patience != 5*o.Within {
		t.Errorf("%+v, %v", o, err)
	}
}
