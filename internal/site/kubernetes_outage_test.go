package site

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trimtab/trimtab/internal/kube/kubetest"
	"github.com/trimtab/trimtab/internal/trial"
)

// Item 25 of the acceptance list. The API server answers 30% of requests with an error and
// some with a conflict, is away, and comes back. A case is a second of the outage.
func TestAnAPIServerThatFailsAndWasAwayGetsFewRequestsAndNobodyIsLowered(t *testing.T) {
	t.Parallel()
	tr := trial.Start(t, 1)
	server := kubetest.New(t)
	server.Shop(2, kubetest.HalfCore)
	var mu sync.Mutex
	var came []time.Time
	random := rand.New(rand.NewPCG(tr.Seed, 1))
	var away atomic.Bool
	server.Before(func(r *http.Request) {
		mu.Lock()
		came = append(came, time.Now())
		mu.Unlock()
	})
	fails := func(r *http.Request) int { // called by one at a time
		switch p := random.Float64(); {
		case away.Load():
			return http.StatusServiceUnavailable
		case p < 0.3:
			return []int{500, 503, 429, 504}[random.IntN(4)]
		case p < 0.4 && r.Method == http.MethodPatch:
			return http.StatusConflict
		}
		return 0
	}
	if tr.N > 1 { // from the start on, which takes half a minute longer
		server.Fail(fails)
	}
	s := inCluster(t, server, "act", ", journal: trimtab")
	server.Fail(fails)
	until := func(what string, most time.Duration, true func() bool) {
		t.Helper()
		deadline := time.After(most)
		for !true() {
			select {
			case <-deadline:
				t.Fatalf("not within %v: %s; limits %s and %s", most, what, limitOf(server, 0), limitOf(server, 1))
			case <-time.After(10 * time.Millisecond):
				server.Kubelet(kubetest.PodPath(0))
				server.Kubelet(kubetest.PodPath(1))
			}
		}
	}
	raised := func() bool { return limitOf(server, 0) == "800m" && limitOf(server, 1) == "800m" }
	until("both are raised though the server fails", time.Minute, raised)
	away.Store(true)
	server.EndWatches()
	for range tr.N {
		time.Sleep(time.Second) // real: back-off is the client's
		tr.Case()
	}
	mu.Lock()
	before := len(came)
	mu.Unlock()
	away.Store(false)
	back := time.Now()
	until("the cluster is watched again", 2*time.Minute, func() bool {
		c := s.cluster.Load()
		return time.Since(back) > 3*time.Second && c != nil && len(c.Missing()) == 0
	})
	server.Fail(nil)
	if !raised() {
		t.Errorf("limits are %s and %s", limitOf(server, 0), limitOf(server, 1))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	most := 0
	for i := before; i < len(came); i++ {
		n := 0
		for j := i; j < len(came) && came[j].Sub(came[i]) < time.Second; j++ {
			n++
		}
		most = max(most, n)
	}
	tr.Notef("after the outage at most %d requests in a second, %d in all", most, len(came)-before)
	if most > 50 {
		t.Errorf("%d requests in a second", most)
	}
}
