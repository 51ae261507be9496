package kubernetes_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kubernetes"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

func (c *cluster) journal() (*kubernetes.Journal, error) {
	return kubernetes.OpenJournal(c.t.Context(), c.view.Client, "trimtab", "p")
}

func TestTheJournalOutlivesItsProcess(t *testing.T) {
	c := open(t, 1, burstable)
	j, err := c.journal()
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(hostfs.Entry{Key: "a", Value: []byte("1")}, hostfs.Entry{Key: "b", Value: []byte{0, 255}}); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(hostfs.Entry{Key: "a"}); err != nil {
		t.Fatal(err)
	}
	again, err := c.journal()
	if err != nil {
		t.Fatal(err)
	}
	if keys := again.Keys(""); len(keys) != 1 || keys[0] != "b" {
		t.Errorf("keys %q", keys)
	}
	if v, ok := again.Get("b"); !ok || string(v) != "\x00\xff" {
		t.Errorf("b is %q", v)
	}
}

func TestWhoLostTheJournalWritesItNoMore(t *testing.T) {
	c := open(t, 1, burstable)
	first, err := c.journal()
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.journal()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := first.Append(hostfs.Entry{Key: "a", Value: []byte("old")}); !errors.Is(err, trimtab.ErrStale) || !strings.Contains(err.Error(), "another trimtab") {
			t.Errorf("append: %v", err)
		}
	}
	if err := second.Append(hostfs.Entry{Key: "a", Value: []byte("new")}); err != nil {
		t.Fatal(err)
	}
}

// A server that carries a write out and answers an error, or nothing, takes the journal
// from nobody.
func TestAWriteOfTheJournalThatWasCarriedOutAndNotAnsweredLosesNothing(t *testing.T) {
	c := open(t, 1, burstable)
	j, err := c.journal()
	if err != nil {
		t.Fatal(err)
	}
	c.Lose(1)
	if err := j.Append(hostfs.Entry{Key: "a", Value: []byte("1")}); err == nil || errors.Is(err, trimtab.ErrStale) {
		t.Errorf("the one that was not answered: %v", err)
	}
	if err := j.Append(hostfs.Entry{Key: "b", Value: []byte("2")}); err != nil {
		t.Fatalf("the next one: %v", err)
	}
	again, err := c.journal()
	if err != nil {
		t.Fatal(err)
	}
	if keys := again.Keys(""); len(keys) != 1 || keys[0] != "b" {
		t.Errorf("keys %q", keys)
	}
}

func TestAJournalThatSomebodyOverwroteIsDamagedAndGoesOn(t *testing.T) {
	c := open(t, 1, burstable)
	if _, err := c.journal(); err != nil {
		t.Fatal(err)
	}
	for _, garbage := range []string{"bm90IGd6aXA=", "H4sIAAAAAAAA"} {
		c.Edit("/api/v1/namespaces/trimtab/configmaps/trimtab-journal-p", func(o kubetest.Object) {
			kubetest.Sub(o, "binaryData")["journal"] = garbage
		})
		j, err := c.journal()
		if err != nil || j.Damaged() != 1 {
			t.Errorf("%s: damaged %d, %v", garbage, j.Damaged(), err)
		}
	}
}

// Without a journal nothing is written: no PATCH leaves before the PUT was answered.
func TestNothingIsWrittenWithoutTheJournal(t *testing.T) {
	c := open(t, 1, burstable)
	a := c.actuator("h")
	defer func() { _ = a.Close(context.Background()) }()
	c.Fail(func(r *http.Request) int {
		if r.Method == http.MethodPut {
			return 500
		}
		return 0
	})
	if o := a.Handle(t.Context(), plan("checkout-7d9f-aa", 0.5, 1)); !strings.Contains(o.Refused, "journal") {
		t.Errorf("outcome %+v", o)
	}
	if c.patches("resize") != 0 {
		t.Error("a pod was resized")
	}
	c.Fail(nil)
}

// actuator opens one with a journal in the cluster.
func (c *cluster) actuator(host string) *actuator.Actuator {
	c.t.Helper()
	target := actuator.Target{KnobID: trimtab.KnobID{Workload: "checkout", Resource: trimtab.CPU}, Min: 0.1, Max: 6, Mode: trimtab.Act}
	a, err := actuator.Open(c.t.Context(), actuator.Config{
		Host: host, Pool: "p", Dir: c.t.TempDir(), Reopen: c.pods.Reopen, KeepOnStop: true,
		OpenJournal: func(ctx context.Context) (actuator.Journal, error) {
			return kubernetes.OpenJournal(ctx, c.view.Client, "trimtab", "p")
		},
		Finders: []actuator.Finder{c.pods.Finder(actuator.Location{Path: podsAt}, podsAt, []actuator.Target{target})},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// An actuator is killed after any number of requests: each pod that was changed has an
// entry in the journal from which its baseline comes back.
func TestKilledAnywhereTheJournalKnowsEveryChange(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 12 {
		c := open(t, 3, burstable)
		a := c.actuator("h")
		left := random.IntN(6)
		c.Fail(func(r *http.Request) int { // from here on the server hears nothing of it
			if r.Method == http.MethodGet {
				return 0
			}
			if left--; left < 0 {
				return 500
			}
			return 0
		})
		p := plan("checkout-7d9f-aa", 0.5, 1)
		for _, name := range []string{"checkout-7d9f-ab", "checkout-7d9f-ac"} {
			more := p.Actions[0]
			more.Instance = name
			p.Actions = append(p.Actions, more)
		}
		a.Handle(t.Context(), p)
		c.Fail(nil)
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		j, err := c.journal()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := actuator.RestoreJournal(t.Context(), j, c.pods.Reopen); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			app := kubetest.Container(c.Get(kubetest.PodPath(i)), "app")
			if got := kubetest.Sub(app, "resources", "limits")["cpu"]; got != "500m" {
				t.Fatalf("pod %d has %v after the restore, and %d writes went through", i, got, left)
			}
		}
	}
}
