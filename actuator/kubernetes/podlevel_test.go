package kubernetes_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kubernetes"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// openWhole opens a shop of pods with two containers and resources of their own. limit is the CPU limit of
// the container app, "": none.
func openWhole(t *testing.T, minor int, whole, limit string) *cluster {
	t.Helper()
	s := kubetest.New(t)
	s.Version(minor)
	app := `{"requests":{"cpu":"100m"}}`
	if limit != "" {
		app = fmt.Sprintf(`{"requests":{"cpu":"100m"},"limits":{"cpu":%q}}`, limit)
	}
	s.Shop(2, app)
	s.Edit(kubetest.Node, func(o kubetest.Object) {
		kubetest.Sub(o, "status")["declaredFeatures"] = []any{"InPlacePodLevelResourcesVerticalScaling"}
	})
	for i := range 2 {
		s.Edit(kubetest.PodPath(i), func(o kubetest.Object) {
			spec := kubetest.Sub(o, "spec")
			spec["resources"] = kubetest.Parse(t, whole)
			spec["containers"] = append(spec["containers"].([]any), kubetest.Parse(t, `{"name":"proxy","resources":{"requests":{"cpu":"50m"},"limits":{"cpu":"300m"}}}`))
		})
		s.Kubelet(kubetest.PodPath(i))
	}
	return watch(t, s)
}

const (
	wholeBurstable  = `{"requests":{"cpu":"500m","memory":"64Mi"},"limits":{"cpu":"1","memory":"128Mi"}}`
	wholeGuaranteed = `{"requests":{"cpu":"1","memory":"128Mi"},"limits":{"cpu":"1","memory":"128Mi"}}`
)

// whole is what spec.resources of the first pod has of CPU.
func (c *cluster) whole(part string) any {
	return kubetest.Sub(c.Get(kubetest.PodPath(0)), "spec", "resources", part)["cpu"]
}

func TestThePodsOwnCPUIsSetWhereItsContainerHasNoLimitAndComesBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		resources, request string
		floor              float64
	}{
		"Burstable": {wholeBurstable, "500m", 0.5}, "Guaranteed": {wholeGuaranteed, "2000m", 0.3}, // the proxy's limit is below the pod's
	} {
		t.Run(name, func(t *testing.T) {
			c := openWhole(t, 37, test.resources, "")
			k := c.limit(trimtab.CPU)
			if got := read(t, k); got != 1 || !strings.Contains(k.String(), "as a whole (spec.resources)") {
				t.Fatalf("%s has %v", k, got)
			}
			undo := k.(*kubernetes.Limit).Undo()
			if floor, err := k.Traits().Floor(t.Context()); err != nil || floor.Value != test.floor {
				t.Errorf("floor %v, %v", floor, err)
			}
			if err := write(t.Context(), k, 2); err != nil {
				t.Fatal(err)
			}
			if c.whole("limits") != "2000m" || c.whole("requests") != test.request {
				t.Errorf("limit %v, request %v", c.whole("limits"), c.whole("requests"))
			}
			if app := kubetest.Container(c.Get(kubetest.PodPath(0)), "app"); len(kubetest.Sub(app, "resources", "limits")) > 0 {
				t.Errorf("the container got a limit: %v", app)
			}
			if got := effective(t, k); got != 1 {
				t.Errorf("in force %v before the node says so", got)
			}
			c.Kubelet(kubetest.PodPath(0))
			eventually(t, "it is in force", func() bool { return effective(t, k) == 2 })
			back, err := c.reopenLimit(undo)
			if err == nil {
				err = back.Traits().Restore(t.Context(), undo)
			}
			if err != nil || c.whole("limits") != "1000m" {
				t.Errorf("restored to %v, %v", c.whole("limits"), err)
			}
		})
	}
}

func TestCPUOfAPodAsAWholeAndMemoryOfItsContainerAreTwoPatches(t *testing.T) {
	t.Parallel()
	c := openWhole(t, 37, wholeBurstable, "")
	cpu, memory := c.limit(trimtab.CPU), c.limit(trimtab.Memory)
	err := cpu.Traits().WriteWith(t.Context(), trimtab.Units(2), memory, trimtab.Units(1<<26))
	if !errors.Is(err, trimtab.ErrRefused) || len(c.Writes()) != 0 {
		t.Errorf("%v, writes %q", err, c.Writes())
	}
}

func TestAPodsOwnRequestIsItsWeightAndHoldsThoseOfItsContainers(t *testing.T) {
	t.Parallel()
	c := openWhole(t, 37, wholeBurstable, "")
	c.rules.Weighs = true
	k := c.limit(trimtab.CPU)
	if _, ok := k.(*kubernetes.Request); !ok || read(t, k) != 0.5 {
		t.Fatalf("%T %s", k, k)
	}
	if floor, err := k.Traits().Floor(t.Context()); err != nil || floor.Value != 0.15 {
		t.Errorf("floor %v, %v: 100m and 50m are inside", floor, err)
	}
	if err := write(t.Context(), k, 0.8); err != nil || c.whole("requests") != "800m" || c.whole("limits") != "1" {
		t.Errorf("%v: request %v, limit %v", err, c.whole("requests"), c.whole("limits"))
	}
	if st := k.Traits().Status(t.Context()); st == nil || strings.Contains(st.Note, "other containers") {
		t.Errorf("%+v", st)
	}
}

func TestTheLimitOfTheWholePodBoundsThatOfAContainerAndIsNamed(t *testing.T) {
	t.Parallel()
	c := openWhole(t, 37, wholeBurstable, "600m")
	k := c.limit(trimtab.CPU)
	if got := read(t, k); got != 0.6 || strings.Contains(k.String(), "spec.resources") {
		t.Fatalf("%s has %v", k, got)
	}
	if got := k.Nearest(trimtab.Units(3)); got.Value != 1 {
		t.Errorf("nearest to 3 is %v, want that of the pod", got)
	}
	if st := k.Traits().Status(t.Context()); st == nil || st.Most != 1 || !strings.Contains(st.By, "whole pod (spec.resources)") {
		t.Errorf("%+v", st)
	}
	// The class goes by the pod's: a container's request and limit may meet.
	if err := write(t.Context(), k, 0.9); err != nil {
		t.Error(err)
	}
}

func TestOnANodeWhoseKubeletDoesNotDeclareItAPodIsNotResizedAsAWholeAndItsContainersAre(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]string{"": "does not declare InPlacePodLevelResourcesVerticalScaling", "600m": ""} {
		c := openWhole(t, 37, wholeBurstable, limit)
		k := c.limit(trimtab.CPU)
		read(t, k)
		_, changes := c.view.MarkOf("shop", firstPod)
		c.Edit(kubetest.Node, func(o kubetest.Object) { delete(kubetest.Sub(o, "status"), "declaredFeatures") })
		eventually(t, "the node is seen", func() bool { _, now := c.view.MarkOf("shop", firstPod); return now != changes })
		err := write(t.Context(), k, 0.9)
		if want == "" && err != nil || want != "" && (!errors.Is(err, actuator.ErrReadOnly) || !strings.Contains(err.Error(), want) || len(c.Writes()) != 0) {
			t.Errorf("limit %q: %v, writes %q", limit, err, c.Writes())
		}
	}
}

func TestBefore136NothingOfAPodWithResourcesOfItsOwnIsTriedAndTheReasonIsNamed(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"", "600m"} {
		c := openWhole(t, 35, wholeBurstable, limit)
		k := c.limit(trimtab.CPU)
		read(t, k)
		if err := k.MayWrite(t.Context()); !errors.Is(err, actuator.ErrReadOnly) || !strings.Contains(err.Error(), "before Kubernetes 1.36") {
			t.Errorf("limit %q: %v", limit, err)
		}
		if err := write(t.Context(), k, 0.9); err == nil || len(c.Writes()) != 0 {
			t.Errorf("limit %q: %v, writes %q", limit, err, c.Writes())
		}
	}
}
