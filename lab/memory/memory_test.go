package memory

import (
	"math"
	"strings"
	"testing"
	"time"
)

// series is a reading every minute for some days.
func series(days int, use func(hour float64) float64) Series {
	s := Series{Name: "test"}
	for m := range days * 24 * 60 {
		s.Readings = append(s.Readings, Reading{time.Unix(1e9, 0).Add(time.Duration(m) * time.Minute), use(float64(m) / 60)})
	}
	return s
}

func flat(float64) float64 { return 1 << 30 }

func TestEachRuleSetsTheLimitThatItsWordsGive(t *testing.T) {
	for rule, want := range map[string]float64{
		"trimtab": 1.07, "autopilot": 1.15,
		"autopilot98": 1.15 * 1.05, "vpa": 1.15 * 1.05, // buckets of a histogram grow by 5%: their end counts
	} {
		s := Play(series(4, flat), rule)
		if got := s.Limit / (1 << 30); s.Overruns != 0 || s.Readings != 3*24*60 || got > want*1.01 || got < want/1.05 {
			t.Errorf("%s: %+v, a limit of %.3f GiB, want at most %.3f", rule, s, got, want)
		}
		if want := 1 - float64(1<<30)/s.Limit; rule != "trimtab" && math.Abs(s.Slack-want) > 1e-9 {
			t.Errorf("%s: slack %v, want %v", rule, s.Slack, want)
		}
	}
}

// A reading is judged by the limit that was set before it.
func TestAJumpOverrunsEveryRuleOnceAndTheLimitFollows(t *testing.T) {
	jump := func(hour float64) float64 {
		if hour < 60 {
			return 1 << 30
		}
		return 3 << 30
	}
	for _, rule := range Rules() {
		s := Play(series(4, jump), rule)
		if s.Overruns == 0 || rule == "trimtab" && s.Overruns != 1 {
			t.Errorf("%s: %+v", rule, s)
		}
	}
	if s := Play(series(4, jump), "no such rule"); s.Readings != 0 {
		t.Errorf("%+v", s)
	}
}

func TestARecordingIsReadByItsColumnsAndWhatIsNoNumberIsLeftOut(t *testing.T) {
	const text = "m_2,20,1,50\nm_1,10,1,25\nm_1,30,1,\nm_1,5,1,-3\nshort\nm_1,20,1,NaN\nm_1,40,1,100\n"
	f, err := FormatOf("machine_usage_shared.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	all, err := Read(strings.NewReader(text), "x", f)
	if err != nil || len(all) != 2 || len(all[0].Readings) != 2 || all[0].Readings[0].Bytes != whole/4 || all[0].Readings[1].Bytes != whole || all[1].Readings[0].Bytes != whole/2 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := FormatOf("else.csv"); err == nil {
		t.Error("an unknown recording has a format")
	}
}
