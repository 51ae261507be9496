package actuator_test

import (
	"testing"

	"github.com/trimtab/trimtab/actuator"
)

func FuzzJournalRecordsAreTotal(f *testing.F) {
	f.Add("position", []byte(`{"epoch":1,"sequence":2,"step":3}`))
	f.Add("lease", []byte(`{"boot":"b","until_ns":1,"length_s":30}`))
	f.Add("knob/cpu/w0", []byte(`{"target":"w0","resource":"cpu","undo":"e30=","baseline":2,"wrote":[1,"unlimited"]}`))
	f.Add("knob/cpu/w0", []byte(`{"pool":"p","host":"h","workload":"w0","resource":"cpu","undo":"e30=","baseline":2,"wrote":[1,"unlimited"]}`))
	f.Add("knob/cpu/w0", []byte(`{"target":"w0","resource":"cpu","baseline":-2}`))
	f.Add("paused", []byte(`"2026-11-20T12:00:00Z"`))
	f.Add("released/w", []byte(`true`))
	f.Add("future", []byte(`{}`))
	f.Fuzz(func(t *testing.T, k string, value []byte) {
		for _, v := range actuator.DecodeRecord(k, value) {
			if err := v.Validate(); err != nil {
				t.Errorf("%s %s: %v", k, value, err)
			}
		}
	})
}
