package kube

import (
	"encoding/json"
	"math"
	"testing"
)

func TestWhatAPodRequestsIsWhatTheSchedulerKeepsFreeForIt(t *testing.T) {
	const app, proxy, job = `{"resources":{"requests":{"cpu":"1"}}}`, `{"restartPolicy":"Always","resources":{"requests":{"cpu":"500m"}}}`, `{"resources":{"requests":{"cpu":"3"}}}`
	for spec, want := range map[string]float64{
		`{}`: 0,
		`{"containers":[` + app + `,` + app + `]}`:                                                    2,
		`{"containers":[` + app + `],"overhead":{"cpu":"250m"}}`:                                      1.25,
		`{"containers":[` + app + `],"initContainers":[` + proxy + `]}`:                               1.5,
		`{"containers":[` + app + `],"initContainers":[` + job + `]}`:                                 3,
		`{"containers":[` + app + `],"initContainers":[` + proxy + `,` + job + `]}`:                   3.5,
		`{"containers":[` + app + `],"initContainers":[` + job + `,` + proxy + `]}`:                   3,
		`{"containers":[` + app + `],"resources":{"requests":{"cpu":"2"}},"overhead":{"cpu":"250m"}}`: 2.25,
		`{"containers":[` + app + `],"resources":{"requests":{"memory":"1Gi"}}}`:                      1,
	} {
		p := &Pod{}
		if err := json.Unmarshal([]byte(`{"spec":`+spec+`}`), p); err != nil {
			t.Fatal(err)
		}
		if got := p.Requests("cpu"); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", spec, got, want)
		}
	}
}
