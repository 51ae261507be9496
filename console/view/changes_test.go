package view

import (
	"fmt"
	"testing"

	"github.com/trimtab/trimtab"
)

func TestTooManyNamesBecomeAll(t *testing.T) {
	v := testView()
	_, told := v.Changes(0, noon)
	for w := range maxNames + 1 {
		v.Observe(&trimtab.Estimate{Workload: fmt.Sprint("w", w), Time: noon})
	}
	if c, _ := v.Changes(told, noon); !c.All || len(c.Workloads) != 0 {
		t.Errorf("%+v", c)
	}
}

func TestWhileNobodyWaitsAChangeMakesNoChannel(t *testing.T) {
	v := testView()
	if n := testing.AllocsPerRun(100, v.Touch); n != 0 {
		t.Errorf("%v allocations a change, want none", n)
	}
	for range 2 {
		a, b := v.Changed(), v.Changed()
		v.Touch()
		<-a
		<-b
	}
}
