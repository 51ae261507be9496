package path

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// refusal is the span of a request that a gate refused.
func refusal(trace int, class string) from {
	r := request(trace, append(on("h1", "gate"), trimtab.Attr{Key: codes.RefusedAttribute, Value: class}))
	r.flags, r.end = trimtab.FlagError, 0.1
	return r
}

func TestRefusedRequestsAreDemandByClassThatTookNoTimeOfTheService(t *testing.T) {
	sampled := refusal(4, "low")
	sampled.adjusted, sampled.flags = 4, trimtab.FlagAdjusted|trimtab.FlagError
	config := shop()
	config.Workloads[0].Threshold = 20e6
	got := run(t, newPath(t, config), framed(t, request(0, on("h1", "a")), request(1, on("h1", "a")), refusal(2, "low"), refusal(3, "critical"), sampled))["shop"]
	if got.Requests != 8 || got.Errors != 6 || got.Under != 2 {
		t.Errorf("%v requests, %v errors, %v in time", got.Requests, got.Errors, got.Under)
	}
	if d := cmp.Diff(map[string]float64{"critical": 1, "low": 5}, got.Refused); d != "" {
		t.Error(d)
	}
	if n := got.Latency.Count(); n != 2 {
		t.Errorf("%v latencies", n)
	}
	if d := cmp.Diff([]trimtab.InstanceLoad{{Host: "h1", Names: []string{"a"}, Requests: 2}}, got.Instances); d != "" {
		t.Error(d)
	}
	if n := got.Components["shop"].Sojourn.Count(); n != 2 {
		t.Errorf("%v sojourns", n)
	}
}

func TestClassesOfRefusedRequestsAreBounded(t *testing.T) {
	var all []from
	for k := range 3 * maxClasses {
		all = append(all, refusal(k, fmt.Sprint("class", k)))
	}
	all = append(all, refusal(len(all), ""))
	got := run(t, newPath(t, shop()), framed(t, all...))["shop"]
	sum := 0.0
	for _, n := range got.Refused {
		sum += n
	}
	if err := got.Validate(); err != nil || len(got.Refused) != maxClasses || sum != float64(len(all)) || got.Refused[Other] < 2 {
		t.Errorf("%v: %v", err, got.Refused)
	}
}
