//go:build integration

package microservices

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestTheFrozenWorksAreNearALocalOptimum is the tool of the calibration: from
// the frozen works, a random search over one or two services at a time for the
// four recorded means. It prints the ratios of the frozen works and of those
// that it finds, which must not be twice as good.
func TestTheFrozenWorksAreNearALocalOptimum(t *testing.T) {
	dir := os.Getenv("TRIMTAB_DATA")
	if dir == "" {
		t.Skip("TRIMTAB_DATA is not set: it names the directory with cilantro/hotelres_log_*.csv")
	}
	var logs [][]Record
	for _, run := range Recorded() {
		f, err := os.Open(filepath.Join(dir, "cilantro", run.File))
		if err != nil {
			t.Fatal(err)
		}
		log, err := ReadLog(f, run.File)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, log)
	}
	r := rand.New(rand.NewPCG(1, 2))
	works := services()
	off := func(works []Service) (ratios []float64, loss float64) {
		for i, run := range Recorded() {
			ratio := run.with(works, logs[i]).Ratio
			ratios, loss = append(ratios, ratio), loss+math.Pow(math.Log(ratio), 2)
		}
		return ratios, loss
	}
	ratios, least := off(works)
	begun := least
	t.Logf("frozen: %.3f", ratios)
	for range 150 {
		try := append([]Service(nil), works...)
		for range 1 + r.IntN(2) {
			try[r.IntN(Count)].Work *= math.Exp(0.1 * r.NormFloat64())
		}
		if got, loss := off(try); loss < least {
			works, least, ratios = try, loss, got
		}
	}
	t.Logf("fitted on: %.3f", ratios)
	if least < begun/2 {
		t.Errorf("squares of the logarithms add up to %.4f, to %.4f in the beginning", least, begun)
	}
	for i, run := range Recorded() {
		if math.Abs(ratios[i]-1) > 0.2 {
			t.Errorf("%s: %.3f times what was recorded", run.Name, ratios[i])
		}
	}
}

func TestWithSpansTheLevelIsReachedInHalfTheRounds(t *testing.T) {
	x := experiment(100, EndToEnd, WithSpans)
	o, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	_, level := x.Best()
	alone, spans := Summarize(&o[0], level), Summarize(&o[1], level)
	if alone.Rounds == nil || spans.Rounds == nil || *spans.Rounds > *alone.Rounds/2 {
		t.Fatalf("%+v, with spans %+v: want the level in half the rounds", alone, spans)
	}
	t.Logf("the level after %d rounds, with spans after %d", *alone.Rounds, *spans.Rounds)
}
