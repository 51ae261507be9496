package main

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/lab/services"
)

// surge is the run of a policy in a load that fits, does not, and fits again.
func surge(t *testing.T, policy string) (*services.Result, services.Admission) {
	t.Helper()
	s, err := services.Named("surge200", 180)
	if err != nil {
		t.Fatal(err)
	}
	s.Gated = true
	signal := "spans"
	if services.IsRule(policy) {
		signal = "–"
	}
	r, err := (&simServicesCmd{}).one(s, policy, signal, 1)
	if err != nil {
		t.Fatal(err)
	}
	return r, s.Admitted(r)
}

// Needs are twice the pool for a third of the run.
func TestEachObjectiveWithAdmissionBeatsLimitersThatKnowNeitherCapacityNorEachOther(t *testing.T) {
	t.Parallel()
	gates, _ := surge(t, "weights+gate")
	var blind []*services.Result
	for _, name := range []string{"weights+gradient2", "weights+envoy"} {
		r, _ := surge(t, name)
		blind = append(blind, r)
	}
	for objective, more := range map[string]float64{"social": 0.001, "egalitarian": 0.01, "njc": -0.01} {
		r, a := surge(t, objective+"+gate")
		got, _ := r.Welfare.Of(objective)
		for _, b := range append(blind, gates) {
			least, _ := b.Welfare.Of(objective)
			margin := 0.03
			if b == gates { // which serve as much, and divide as the kernel does
				margin = more
			}
			if got < least+margin {
				t.Errorf("%s is worth %.3f by its own measure, %s %.3f", objective, got, b.Policy, least)
			}
		}
		if a.Goodput < 0.97 || a.InTime[0] < 0.99 || !(a.First > 0 && a.First < 1) {
			t.Errorf("%s: goodput %.3f, %.3f of the critical requests in time, first refusal after %.3f s", objective, a.Goodput, a.InTime[0], a.First)
		}
		if a.After > a.Before+0.005 {
			t.Errorf("%s: %.4f are refused before the overload, %.4f from 5 s after it", objective, a.Before, a.After)
		}
	}
}

func TestWithoutAdmissionNothingIsRefusedAndNothingServed(t *testing.T) {
	t.Parallel()
	if _, a := surge(t, "weights"); a.Goodput > 0.05 || a.First >= 0 || a.Refused != [3]float64{} {
		t.Errorf("%+v", a)
	}
}

func TestEachRequestIsAnsweredRefusedOrWaits(t *testing.T) {
	t.Parallel()
	none, _ := surge(t, "weights")
	for _, policy := range []string{"weights+envoy", "social+gate"} {
		r, _ := surge(t, policy)
		for i := range r.Requests {
			if math.Abs(r.Requests[i]-none.Requests[i]) > 0 {
				t.Errorf("%s: %v requests of service %d, %v came", policy, r.Requests[i], i, none.Requests[i])
			}
		}
	}
}

func TestAFrontIsOfAKnownNameAndBeforeNoOracle(t *testing.T) {
	s, err := services.Named("surge200", 60)
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range []string{"weights+wall", "oracle:social+gate"} {
		if _, err := services.Rule(s, policy, 1); err == nil {
			t.Errorf("%s was played", policy)
		}
	}
}

func TestWhatIsRefusedIsPrintedByServiceAndClass(t *testing.T) {
	s, err := services.Named("surge200", 60)
	if err != nil {
		t.Fatal(err)
	}
	r, err := services.Rule(s, "weights+gate", 1)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	table := newRefusing(s)
	table.row("weights+gate", "–", []*services.Result{r})
	if err := table.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"REFUSED POSTGRES", "IN TIME CRITICAL", "5 S AFTER", "weights+gate"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}
