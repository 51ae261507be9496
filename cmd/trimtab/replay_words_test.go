package main

import (
	"os"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/sim/kubernetes"
)

func TestTheObjectOfAWorkloadIsTheOneThatTargetsItOrTheOnlyOne(t *testing.T) {
	a := func(namespace, target string) config.Autoscaler {
		return config.Autoscaler{Kind: config.KindHPA, Namespace: namespace, Name: target + "-hpa", Target: target}
	}
	for name, c := range map[string]struct {
		all   []config.Autoscaler
		known []scaled
		want  string // namespace and target, or what the mistake says
	}{
		"none":                           {nil, nil, ""},
		"one alone is that of all":       {[]config.Autoscaler{a("shop", "other")}, nil, "shop/other"},
		"by its name":                    {[]config.Autoscaler{a("shop", "other"), a("shop", "basket")}, nil, "shop/basket"},
		"by its Deployment first":        {[]config.Autoscaler{a("shop", "basket"), a("shop", "web")}, []scaled{{"shop", "web"}}, "shop/web"},
		"in its namespace":               {[]config.Autoscaler{a("test", "basket"), a("shop", "basket")}, []scaled{{"shop", "basket"}}, "shop/basket"},
		"none of several":                {[]config.Autoscaler{a("", "x"), a("", "y")}, nil, "none of 2 HorizontalPodAutoscalers scales \"basket\": they scale x, y"},
		"two of one, in two namespaces":  {[]config.Autoscaler{a("test", "basket"), a("shop", "basket")}, nil, "both scale"},
		"its namespace has none of them": {[]config.Autoscaler{a("test", "web"), a("dev", "web")}, []scaled{{"shop", "web"}}, "none of 2"},
	} {
		got, err := of(c.all, "basket", append(c.known, scaled{name: "basket"}))
		switch {
		case err != nil:
			if c.want == "" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", name, err, c.want)
			}
		case got == nil && c.want != "" || got != nil && got.Namespace+"/"+got.Target != c.want:
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}

func TestAWorkloadWithoutAnObjectBesideOthersThatHaveOneIsANote(t *testing.T) {
	words := func() *podWords {
		return &podWords{found: map[string]bool{}, hpa: []config.Autoscaler{{Kind: config.KindHPA, Name: "a", Target: "a", Max: 3}, {Kind: config.KindHPA, Name: "b", Target: "b", Max: 3}}}
	}
	named := func(names ...string) (all []kubernetes.Recorded) {
		for _, n := range names {
			all = append(all, kubernetes.Recorded{Service: kubernetes.Service{Name: n, Cost: 0.01}, Request: 1})
		}
		return all
	}
	w := words()
	if out, err := w.fitting(named("a", "c"), nil); err != nil || len(out) != 2 || len(w.notes) != 1 || !strings.Contains(w.notes[0], `scales "c"`) {
		t.Errorf("%v, %q", err, w.notes)
	}
	if _, err := words().fitting(named("c", "d"), nil); err == nil {
		t.Error("nothing fits, and nothing says so")
	}
}

func TestTwoObjectsOfWhichNoneIsTheWorkloadsAreTold(t *testing.T) {
	const dir = "../../../shared/cases/"
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the folder of small inputs is not here")
	}
	c := replayPods{HPA: dir + "45-hpa-two-objects.yaml"}
	w, err := c.words()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.fitting([]kubernetes.Recorded{{Service: kubernetes.Service{Name: "load", Cost: 0.01}, Request: 1}}, nil); err == nil || !strings.Contains(err.Error(), "they scale basket, edge") {
		t.Error(err)
	}
}
