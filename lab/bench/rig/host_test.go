package rig

import "testing"

func TestAHostThatCannotBeOpenedIsAnErrorAndLeavesNothing(t *testing.T) {
	if _, err := FindRoot(); err != nil {
		t.Skipf("no cgroup to make groups in: %v", err)
	}
	if h, err := OpenHost("no/such/group", 100); err == nil || h != nil {
		t.Errorf("%v, %v, want an error", h, err)
	}
}
