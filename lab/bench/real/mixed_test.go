package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/lab/bench/rig"
	"github.com/trimtab/trimtab/lab/services/shape"
)

func TestScenariosWithOtherServicesArePlayedByThemselves(t *testing.T) {
	for args, ok := range map[string]bool{
		"--scenario mixed,mixed150 --policy weights,equal,oracle:njc,trimtab:njc:spans,trimtab:social:promql": true,
		"--scenario mixed,peaks":     false,
		"--scenario tight,mixed150":  false,
		"--scenario mixed,two-hosts": false,
	} {
		if _, err := parse(strings.Fields(args)); (err == nil) != ok {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestTheServicesOfScenarioMixedAreOthersAndTheJVMAloneBeginsEachRowCold(t *testing.T) {
	names, all := team(shape.Scenario{Mixed: true})
	for i, name := range names {
		s := service{Name: name, software: all[i]}
		if s.isCold() != (name == "java") {
			t.Errorf("%s: cold: %v", name, s.isCold())
		}
		m, _ := all[i].(*managed)
		if _, err := scripts.ReadFile("mixed/" + m.file); err != nil {
			t.Error(err)
		}
	}
	if names, all := team(shape.Scenario{}); names != shape.Names() || (&service{software: all[1]}).isCold() {
		t.Error(names)
	}
}

func TestOnlyTheWorkThatWasAskedForIsAnAnswer(t *testing.T) {
	for answer, ok := range map[string]bool{"done 7\n": true, "done 8\n": false, "no\n": false, "": false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("work") != "7" {
				w.WriteHeader(http.StatusBadRequest)
			}
			fmt.Fprint(w, answer)
		}))
		m := managed{address: server.Listener.Addr().String(), client: server.Client()}
		if err := m.do(t.Context(), 7); (err == nil) != ok || err != nil && !errors.Is(err, rig.ErrAnswer) {
			t.Errorf("%q: %v", answer, err)
		}
		if err := m.do(t.Context(), 8); !errors.Is(err, rig.ErrAnswer) {
			t.Errorf("%q and another status: %v", answer, err)
		}
		server.Close()
	}
}
