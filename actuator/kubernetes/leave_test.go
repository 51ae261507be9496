package kubernetes_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kubernetes"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

const (
	secondPod = "checkout-7d9f-ab"
	thirdPod  = "checkout-7d9f-ac"
)

// cost is the deletion cost of a pod, and how many annotations of trimtab's it has besides.
func (c *cluster) cost(pod int) (cost string, others int) {
	c.t.Helper()
	all := kubetest.Sub(c.Get(kubetest.PodPath(pod)), "metadata", "annotations")
	cost, _ = all[kube.DeletionCost].(string)
	delete(all, kube.DeletionCost)
	return cost, len(all)
}

// falls is a plan that lowers the number, by which some pods should go first.
func falls(from, to float64, leave ...string) *trimtab.Plan {
	p := asks(1, order{"checkout", trimtab.Replicas, from, to})
	p.Actions[0].Leave = leave
	return p
}

// chooses opens a shop of four pods whose fall names pods.
func chooses(t *testing.T) *cluster {
	t.Helper()
	c := open(t, 4, burstable)
	c.rules.Choose = true
	return c
}

func TestBeforeAFallThePodsThatServeTheLeastAreAnnotatedAndAfterItNothingStays(t *testing.T) {
	t.Parallel()
	c := chooses(t)
	c.Edit(kubetest.PodPath(2), func(o kubetest.Object) {
		kubetest.Sub(o, "metadata", "annotations")[kube.DeletionCost] = "500" // the site's own
	})
	eventually(t, "the annotation is seen", func() bool {
		p, err := c.view.PodOf("shop", thirdPod, "")
		return err == nil && p.Annotations[kube.DeletionCost] == "500"
	})
	a := c.runs(nil)
	if got := statusOf(a.Handle(t.Context(), falls(4, 2, secondPod, thirdPod, firstPod, "of-another"))); got != trimtab.Pending {
		t.Fatalf("status %v", got)
	}
	writes := c.Writes()
	if last := writes[len(writes)-1]; !strings.HasSuffix(last, "/scale") {
		t.Errorf("the number was not set last: %q", writes)
	}
	for pod, want := range []string{"", "-2", "500", ""} {
		if got, _ := c.cost(pod); got != want {
			t.Errorf("pod %d costs %q, want %q", pod, got, want)
		}
	}
	a.Tick(t.Context())
	if got, _ := c.cost(1); got != "-2" {
		t.Errorf("taken back before the number fell: %q", got)
	}
	// The controller takes two others, since they were not ready.
	c.Delete(kubetest.PodPath(0))
	c.Delete(kubetest.PodPath(3))
	c.Settle()
	eventually(t, "the annotation is removed", func() bool {
		a.Tick(t.Context())
		got, others := c.cost(1)
		return got == "" && others == 0
	})
	if got, others := c.cost(2); got != "500" || others != 0 {
		t.Errorf("the site's own: %q, %d others", got, others)
	}
	n := len(c.Writes())
	a.Tick(t.Context())
	if len(c.Writes()) != n {
		t.Errorf("writes %q", c.Writes()[n:])
	}
}

func TestNoPodIsAnnotatedWhereNothingIsKnownOrItIsNotAskedForOrTheNumberRises(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		choose bool
		plan   *trimtab.Plan
	}{
		"nothing is known": {true, falls(4, 3)}, "it is not asked for": {false, falls(4, 3, firstPod)}, "the number rises": {true, falls(4, 5, firstPod)},
	} {
		c := chooses(t)
		c.rules.Choose = test.choose
		if got := statusOf(c.runs(nil).Handle(t.Context(), test.plan)); got != trimtab.Pending || c.Requests()["PATCH "+firstPod] != 0 {
			t.Errorf("%s: status %v, writes %q", name, got, c.Writes())
		}
	}
}

func TestAFallDoesNotWaitForARightToAnnotatePodsAndWhatIsMissingIsSaid(t *testing.T) {
	t.Parallel()
	c := chooses(t)
	c.Fail(func(r *http.Request) int {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/pods/") {
			return http.StatusForbidden
		}
		return 0
	})
	a := c.runs(nil)
	if got := statusOf(a.Handle(t.Context(), falls(4, 2, firstPod, secondPod))); got != trimtab.Pending || c.Requests()["PATCH "+secondPod] != 0 {
		t.Errorf("status %v, writes %q", got, c.Writes())
	}
	a.Tick(t.Context())
	if k := stateOf(a, trimtab.Replicas, "checkout"); k.Status == nil || !strings.Contains(k.Status.Note, "which pod goes is left to Kubernetes") {
		t.Errorf("%+v", k.Status)
	}
}

func TestARestoreAndANewProcessRemoveAnnotationsOfAFallThatWasCutOff(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*cluster, *actuator.Actuator, []byte){
		"a restore from the journal": func(c *cluster, _ *actuator.Actuator, undo []byte) {
			k, err := c.reopenScale(undo)
			if err == nil {
				err = k.Traits().Restore(c.t.Context(), undo)
			}
			if err != nil {
				c.t.Error(err)
			}
		},
		"a new process": func(c *cluster, _ *actuator.Actuator, _ []byte) {
			a := c.runs(func(config *actuator.Config) { config.Host = "h2" })
			a.Tick(c.t.Context())
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := chooses(t)
			scale := c.scale()
			read(t, scale)
			undo := scale.(*kubernetes.Scale).Undo()
			a := c.runs(nil)
			if got := statusOf(a.Handle(t.Context(), falls(4, 3, firstPod))); got != trimtab.Pending {
				t.Fatalf("status %v", got)
			}
			if got, _ := c.cost(0); got != "-1" {
				t.Fatalf("it costs %q", got)
			}
			c.Settle()
			eventually(t, "the number is seen", func() bool { w, err := c.view.WorkloadOf(checkout); return err == nil && w.Status.Replicas == 3 })
			end(c, a, undo)
			if got, others := c.cost(0); got != "" || others != 0 {
				t.Errorf("%q and %d others stay", got, others)
			}
		})
	}
}

func TestTheRightToAnnotatePodsIsOnlyWrittenDownForThoseWhoWantIt(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("../../deploy/kubernetes", "rbac-act.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "resources: [pods]") && !strings.HasPrefix(line, "#") {
			t.Errorf("rbac-act.yaml gives %q to everybody", line)
		}
	}
	for annotate, want := range map[bool]int{false: 0, true: 1} {
		n := 0
		for _, r := range (&kube.Needs{Namespaces: []string{"shop"}, Resize: true, Scale: true, Annotate: annotate}).Rights() {
			if r.String() == "patch pods in namespace shop" {
				n++
			}
		}
		if n != want {
			t.Errorf("annotate %v: asks for it %d times", annotate, n)
		}
	}
}
