package memory

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/sim/sizing"
)

func TestARecordingIsReadByItsColumnsAndWhatIsNoNumberIsLeftOut(t *testing.T) {
	const text = "m_2,20,1,50\nm_1,10,1,25\nm_1,30,1,\nm_1,5,1,-3\nshort\nm_1,20,1,NaN\nm_1,40,1,100\n"
	f, err := FormatOf("machine_usage_shared.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	all, err := Read(strings.NewReader(text), "x", f)
	if err != nil || len(all) != 2 || len(all[0].Readings) != 2 || all[0].Readings[0].Use != whole/4 || all[0].Readings[1].Use != whole || all[1].Readings[0].Use != whole/2 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := FormatOf("else.csv"); err == nil {
		t.Error("an unknown recording has a format")
	}
}

func TestTheLimitOfAContainerIsReadFromItsShare(t *testing.T) {
	const text = "Time,TimeStamp,PodName,CpuUsage(m),CpuUsageRate(%),MemoryUsage(Mi),MemoryUsageRate(%)\nx,60,shop,1,1,64,25\n"
	f, err := FormatOf("shop_metric.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	all, err := Read(strings.NewReader(text), "x", f)
	if err != nil || len(all) != 1 || all[0].Name != "x shop" || all[0].Readings[0].Use != 64<<20 || all[0].Limit != 256<<20 {
		t.Errorf("%+v, %v", all, err)
	}
}

func flat(days int) sizing.Series {
	s := sizing.Series{Name: "flat"}
	for m := range days * 24 * 60 {
		s.Readings = append(s.Readings, sizing.Reading{At: time.Unix(1e9, 0).Add(time.Duration(m) * time.Minute), Use: 1 << 30})
	}
	return s
}

func TestARestartBeginsLowAndHasAPeak(t *testing.T) {
	was := flat(4)
	got := Restarting(was, rand.New(rand.NewPCG(1, 1)))
	starts, peaks := 0, 0
	for i, x := range got.Readings {
		switch {
		case x.Use < 0.2*(1<<30):
			starts++
			if got.Readings[i+1].Use < 1.2*(1<<30) {
				t.Errorf("no peak after the start at %v", x.At)
			}
		case x.Use > 1.2*(1<<30):
			peaks++
		}
	}
	if starts < 2 || starts > 9 || peaks < 6*starts || peaks > 8*starts || was.Readings[0].Use != 1<<30 {
		t.Errorf("%d starts, %d readings of peaks", starts, peaks)
	}
}

func TestALeakOnUsageThatDoesNotMoveIsNamedInTime(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	leaks := Leaks([]sizing.Series{flat(6), {Name: "too short", Readings: flat(1).Readings}}, 20, r)
	for _, l := range leaks {
		if !l.InTime() || l.Early > 0 || l.Name != "flat" || !l.Kill.After(l.Begin) {
			t.Errorf("%+v", l)
		}
	}
	if len(leaks) != 20 || len(Leaks(nil, 3, r)) != 0 {
		t.Errorf("%d leaks", len(leaks))
	}
}
