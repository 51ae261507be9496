package supervise

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAllWaitsOfTheEndTogetherAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e Ending
		ctx, cancel := e.Within(time.Hour) // a reload: nothing ends
		defer cancel()
		began, _ := e.Begin()
		for range 10 { // ten parts of which none answers
			one, cancel := e.Within(10 * time.Second)
			<-one.Done()
			cancel()
		}
		if took := time.Since(began); took != endParts {
			t.Errorf("ten waits of 10s took %v, want %v", took, endParts)
		}
		if ctx.Err() != nil {
			t.Error("a wait of a reload was cut off")
		}
		e.Stops("colocate")
		if err := e.Await(make(chan error)); err == nil || !strings.Contains(err.Error(), "colocate did not end in time") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took != EndWithin {
			t.Errorf("returned after %v, want %v", took, EndWithin)
		}
	})
}

func TestKnobsBehindAnAPIServerLengthenTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e Ending
		if until := e.Lengthen(time.Minute); !until.IsZero() {
			t.Errorf("lengthened to %v before it began", until)
		}
		began, _ := e.Begin()
		if until := e.Lengthen(time.Minute); until.Sub(began) != time.Minute+EndBus {
			t.Errorf("the bus may be waited for until %v", until.Sub(began))
		}
		ctx, cancel := e.Within(70 * time.Second)
		defer cancel()
		<-ctx.Done()
		if took := time.Since(began); took != 70*time.Second {
			t.Errorf("cut off after %v", took)
		}
	})
}

func TestTheUnitsWaitLongerThanTheEndTakes(t *testing.T) {
	for _, file := range []string{"../../deploy/systemd/trimtab.service", "../../deploy/systemd/trimtab-watch.service", "../cluster/templates/trimtab.service"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`(?m)^TimeoutStopSec=(\S+)$`).FindSubmatch(b)
		if m == nil {
			t.Errorf("%s: no TimeoutStopSec", file)
			continue
		}
		if d, err := time.ParseDuration(string(m[1])); err != nil || d < EndWithin+2*time.Second {
			t.Errorf("%s: %v (%v), and the end may take %v", file, d, err, EndWithin)
		}
	}
}
