package analyzer_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/num"
)

// FuzzAnApplicationSaysNothingThatIsNotValid restores any state of an
// application, whole or damaged, and goes on with any sketch of a member.
func FuzzAnApplicationSaysNothingThatIsNotValid(f *testing.F) {
	f.Add([]byte(`{"members":["db","front","search"],"learner":"kernel/3","curves":["","",""],"rates":[1,1,1],"rate":1e308}`), 1e308, 1e-300, 0.5)
	f.Add([]byte(`{}`), 100.0, 0.01, 0.2)
	f.Fuzz(func(t *testing.T, application []byte, requests, sojourn, latency float64) {
		s := newShop(t, true)
		s.try(2)
		if json.Valid(application) {
			state, err := num.Seal("learn/1", map[string]any{"workload": "front", "report_ns": int64(time.Second), "application": json.RawMessage(application)})
			if err != nil {
				return
			}
			_ = s.a.Restore("front", state)
		}
		for range 2 {
			from := s.now
			s.hold()
			s.now = s.now.Add(time.Second)
			for _, name := range []string{"db", "front"} {
				sketch := s.sketch(from, name, latency)
				sketch.Requests = requests
				sketch.Components[name].Sojourn.Add(sojourn, requests)
				if sketch.Validate() == nil {
					s.a.Step(s.now, sketch)
				}
			}
			for _, v := range s.a.Step(s.now, nil) {
				if err := v.Validate(); err != nil {
					t.Fatal(err)
				}
				if e, ok := v.(*trimtab.Estimate); ok && e.Hold == nil && e.Reports > 0 && e.Curve == nil {
					t.Fatalf("%s: %d reports and no curve", e.Workload, e.Reports)
				}
			}
		}
	})
}
