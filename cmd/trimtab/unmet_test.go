package main

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/console/view"
)

func TestStatusSaysWhatIsNotInForceAndWhatToDo(t *testing.T) {
	now := time.Now()
	v := severalHosts(now)
	v.Observe(&trimtab.Holding{Pool: "cpu", Host: "a", Time: now, Capacity: map[string]float64{"cpu": 4}, Unmet: []trimtab.Unmet{
		{What: codes.UnmetFast, Why: "no quota moves between rounds: the group above cannot be set: read-only", Do: "take fast.parent out"},
		{What: codes.UnmetClaims, Why: "the pool has 0.59 cores here, not 0.7 cores: pool other (process 7) claims up to 1.41 cores", Do: "stop it"},
	}})
	s := v.Status(now)
	s.Tightest = v.Hosts(now, view.Filter{Limit: 10}).Hosts
	for _, wide := range []bool{false, true} {
		var out strings.Builder
		printStatus(&out, &s, wide)
		contains(t, out.String(), "not in force on a: no quota moves between rounds: the group above cannot be set: read-only do: take fast.parent out",
			"on a the pool has 0.59 cores here, not 0.7 cores: pool other (process 7) claims up to 1.41 cores do: stop it")
	}
}

func TestTheCommandVersionPrintsWhatTheFlagDoes(t *testing.T) {
	var flag, command, asJSON strings.Builder
	if Main(t.Context(), []string{"--version"}, &flag, &flag) != exitDone || Main(t.Context(), []string{"version"}, &command, &command) != exitDone ||
		Main(t.Context(), []string{"version", "-o", "json"}, &asJSON, &asJSON) != exitDone {
		t.Fatal(flag.String(), command.String(), asJSON.String())
	}
	if flag.String() != command.String() || !strings.Contains(command.String(), runtime.Version()) {
		t.Errorf("--version says\n%s\nversion says\n%s", flag.String(), command.String())
	}
	var b built
	if err := json.Unmarshal([]byte(asJSON.String()), &b); err != nil || b.Go != runtime.Version() || b.Platform != runtime.GOOS+"/"+runtime.GOARCH {
		t.Errorf("%s: %v", asJSON.String(), err)
	}
}
