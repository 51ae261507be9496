package trimtab

import (
	"errors"
	"slices"
	"testing"

	"github.com/trimtab/trimtab/codes"
)

func TestAKnobIsOfThePoolAndHostOfItsMessage(t *testing.T) {
	right := KnobID{Pool: "p", Host: "h", Workload: "w", Instance: "1", Resource: "cpu"}
	messages := func(k KnobID) []Value {
		return []Value{
			&Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Time: noon, Lease: 1, Cause: Cause{Kind: codes.CauseTick}, Actions: []Action{{KnobID: k, Mode: Act}}},
			&Outcome{Pool: "p", Host: "h", Time: noon, Results: []Result{{KnobID: k}}},
			&Holding{Pool: "p", Host: "h", Time: noon, Targets: []KnobState{{KnobID: k}}},
		}
	}
	for _, v := range messages(right) {
		if err := v.Validate(); err != nil {
			t.Errorf("%s: %v", v.Kind(), err)
		}
	}
	for name, spoil := range map[string]func(*KnobID){
		"another pool":        func(k *KnobID) { k.Pool = "q" },
		"another host":        func(k *KnobID) { k.Host = "g" },
		"no workload":         func(k *KnobID) { k.Workload = "" },
		"no resource":         func(k *KnobID) { k.Resource = "" },
		"a large instance":    func(k *KnobID) { k.Instance = string(make([]byte, 254)) },
		"a workload too long": func(k *KnobID) { k.Workload = string(make([]byte, 254)) },
	} {
		wrong := right
		spoil(&wrong)
		for _, v := range messages(wrong) {
			if v.Kind() == KindPlan && name == "another host" {
				continue // a plan is for all hosts
			}
			if err := v.Validate(); !errors.Is(err, ErrInvalid) {
				t.Errorf("%s with %s: %v", v.Kind(), name, err)
			}
		}
	}
}

func TestKnobsAreOrderedByEveryPartOfTheirName(t *testing.T) {
	order := []KnobID{{}, {Instance: "1"}, {Host: "h"}, {Resource: "cpu"}, {Workload: "w"}, {Pool: "p"}, {Pool: "p", Workload: "w", Resource: "cpu", Host: "h", Instance: "1"}}
	if !slices.IsSortedFunc(order, KnobID.Compare) {
		t.Errorf("not in order: %+v", order)
	}
	for i, k := range order {
		for j, l := range order {
			if (k.Compare(l) == 0) != (i == j) || k.Compare(l) != -l.Compare(k) {
				t.Errorf("%+v against %+v: %d and %d", k, l, k.Compare(l), l.Compare(k))
			}
		}
	}
}

func TestANameForPeopleTellsInstancesApart(t *testing.T) {
	one, two := KnobID{Workload: "w", Resource: "cpu"}, KnobID{Workload: "w", Resource: "cpu", Instance: "2"}
	if one.Name() != "cpu of w" || two.Name() != "cpu of w@2" {
		t.Errorf("%q and %q", one.Name(), two.Name())
	}
}
