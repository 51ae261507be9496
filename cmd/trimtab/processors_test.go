package main

import "testing"

func TestAGateHasAsManyProcessorsAsItUses(t *testing.T) {
	p := processors{now: 1, most: 4}
	for _, look := range []struct {
		used float64
		want int
	}{{0.1, 1}, {0.59, 1}, {0.61, 2}, {1.21, 3}, {2.5, 4}, {4, 4}} {
		if got := p.next(look.used); got != look.want {
			t.Errorf("%v in use: %d processors, want %d", look.used, got, look.want)
		}
	}
	for n := range idleFor - 1 {
		if got := p.next(1.1); got != 4 {
			t.Fatalf("%d processors after %d looks", got, n+1)
		}
	}
	if p.next(1.3); p.idle != 0 {
		t.Error("idle looks count that are not in a row")
	}
	for range 3 * idleFor {
		p.next(0)
	}
	if p.now != 1 {
		t.Errorf("%d processors of an idle gate", p.now)
	}
	for range idleFor {
		if p.next(0) != 1 {
			t.Fatal("no processor is left")
		}
	}
}
