package memory_test

import (
	"errors"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/memory"
)

func TestAStateComesBackAsItWasSealed(t *testing.T) {
	demand := 30
	state, err := memory.Seal(map[string]memory.Workload{"a": {Demand: &demand, Unit: 0.1}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := memory.Unseal(state)
	if err != nil || all["a"].Demand == nil || *all["a"].Demand != 30 {
		t.Errorf("%+v, %v", all, err)
	}
	// Builds of version 1 sealed nothing; what later ones no longer keep is passed over.
	if all, err = memory.Unseal([]byte(`{"a":{"demand":3,"unit":0.1,"trust":{"judged":20,"failed":15}}}`)); err != nil || *all["a"].Demand != 3 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestWhatNoPlannerKeepsIsRefused(t *testing.T) {
	for _, bad := range []string{`{"a":{"demand":-4,"unit":0.1}}`, `{"a":{"move":{"direction":2}}}`, `{"a":{"turn":{"slice":-1}}}`, `{"a":{"others":{"memory":{"others":{"x":{}}}}}}`, `{"a":`, `x`} {
		if _, err := memory.Unseal([]byte(bad)); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
