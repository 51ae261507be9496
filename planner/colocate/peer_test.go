package colocate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab/colocation"
)

func TestPeersOfAServiceChangeNothingForItsHosts(t *testing.T) {
	limit, strict := 0.7, 0.1
	c := &colocation.Contributions{Workload: "shop", MaxLoad: 1, Servpods: []colocation.Servpod{
		{Component: "cart", Host: "a", Contribution: 0.3, LoadLimit: &limit, SlackLimit: &limit}, {Component: "web", Host: "b", Contribution: 0.1}}}
	want := []Service{serviceOf(c, "a"), serviceOf(c, "b")}
	c.Servpods = append(c.Servpods, colocation.Servpod{Component: "postgresql orders-db", Peer: true, Contribution: 9, LoadLimit: &strict, SlackLimit: &strict})
	if d := cmp.Diff(want, []Service{serviceOf(c, "a"), serviceOf(c, "b")}); d != "" {
		t.Error(d)
	}
	if here := servpods(c, "c"); len(here) != 0 {
		t.Errorf("on another host: %+v", here[0])
	}
}
