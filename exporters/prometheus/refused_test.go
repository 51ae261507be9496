package prometheus

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/metric"
)

const refusedName = "trimtab_workload_refused_per_second"

func shed(workload string, second int, refused map[string]float64) *trimtab.Estimate {
	return &trimtab.Estimate{Workload: workload, Time: time.Now().Add(time.Duration(second) * time.Second), Load: &trimtab.LoadForecast{Now: 100, Mean: 100, Upper: 110}, Refused: refused}
}

func TestRefusedRequestsAreExportedByClassFallToZeroAndGoWithTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := metric.NewSet()
		e := New(set)
		e.SetPatience(time.Minute)
		want := func(what, text string) {
			t.Helper()
			if err := testutil.GatherAndCompare(set, strings.NewReader(text), refusedName); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		head := func(text string) string {
			for _, r := range metric.Table() {
				if r.Name == refusedName {
					return "# HELP " + refusedName + " " + r.Help + "\n# TYPE " + refusedName + " gauge\n" + text
				}
			}
			t.Fatal("no " + refusedName)
			return ""
		}
		e.Observe(shed("shop", 0, nil))
		want("none was refused", "")
		e.Observe(shed("shop", 1, map[string]float64{"low": 45, "normal": 5}))
		want("two classes", head(refusedName+`{class="low",workload="shop"} 45`+"\n"+refusedName+`{class="normal",workload="shop"} 5`+"\n"))
		e.Observe(shed("shop", 2, map[string]float64{"low": 1}))
		want("one class", head(refusedName+`{class="low",workload="shop"} 1`+"\n"+refusedName+`{class="normal",workload="shop"} 0`+"\n"))
		gone := shed("shop", 3, map[string]float64{"low": 1})
		gone.Inputs = []trimtab.Input{{Name: "load", Missing: "no spans for 8s"}}
		e.Observe(gone)
		want("the load is missing", "")
		e.Observe(shed("shop", 4, map[string]float64{"low": 2}))
		want("it is back", head(refusedName+`{class="low",workload="shop"} 2`+"\n"+refusedName+`{class="normal",workload="shop"} 0`+"\n"))
		time.Sleep(2 * time.Minute)
		want("nothing was heard for two minutes", "")
	})
}

func TestClassesAndWorkloadsThatSomebodyInventsMakeNoSeriesWithoutEnd(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	classes := map[string]float64{strings.Repeat("x", 200): 1}
	for k := range 60 {
		classes[fmt.Sprintf("c%02d", k)] = 1
	}
	e.Observe(shed("shop", 0, classes))
	if n, err := testutil.GatherAndCount(set, refusedName); n != maxClasses || err != nil {
		t.Errorf("%d series, %v; want %d", n, err, maxClasses)
	}
	for k := range maxShedding + 50 {
		e.Observe(shed(fmt.Sprint("w", k), 0, map[string]float64{"low": 1}))
	}
	n, err := testutil.GatherAndCount(set, refusedName)
	if n != maxClasses+maxShedding-1 || err != nil || e.shedding.bytes > maxRefusedBytes {
		t.Errorf("%d series, %d bytes, %v", n, e.shedding.bytes, err)
	}
	for k := range maxShedding {
		e.Observe(shed(fmt.Sprint("w", k), 1, classes))
	}
	if n, err := testutil.GatherAndCount(set, refusedName); e.shedding.bytes > maxRefusedBytes || err != nil {
		t.Errorf("%d series, %d bytes, %v", n, e.shedding.bytes, err)
	}
}
