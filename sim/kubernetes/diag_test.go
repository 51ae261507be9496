package kubernetes

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/planner/replicas"
)

func TestDiag(t *testing.T) {
	if v := os.Getenv("DIAG"); v != "" {
		fmt.Sscan(v, &diagQ, &diagLevel, &diagH)
	}
	for _, name := range strings.Split(os.Getenv("LOADS"), ",") {
		diag(name, 1)
	}
}

func diag(name string, seed uint64) {
	trace := diagLoad(name)
	w := newWorld(trace, math.Inf(1), seed)
	tr, err := newTrimtabs(w)
	if err != nil {
		panic(err)
	}
	type acc struct{ held, serving, need, ideal, up, mean, raw, marg, pods, ready, now float64 }
	sum := make([]acc, 10)
	n := 0.0
	missed := make([]float64, 10)
	hist := make([][]string, 10)
	for w.second < 2*day {
		w.play()
		if w.second%look == 0 {
			seen := make([]report, 10)
			for i := range seen {
				seen[i] = w.places[i].seen()
			}
			tr.act(w, seen)
			for i, p := range w.places {
				k := tr.of[i]
				nr, least, held := p.serving()
				soon, _ := k.round.Forecast(diagH, diagLevel)
				later, _ := k.start.Forecast(5, diagLevel)
				line := fmt.Sprintf("   t=%d rate seen %.0f up %.0f later %.0f now %.0f bl %.0f | n %d/%d a %.2f eff %.2f need %.2f margin %.3f fit %.3f aim %.3f intime %.3f asked %.2f", w.second, seen[i].rate, soon.Upper, later.Upper, p.rate, p.backlog, nr, len(p.pods), least, float64(nr)*least, p.need(nr), k.state.Margin.Share, k.fit.Factor(diagQ), k.window.Aim(.95, soon.Upper*look), seen[i].inTime, p.pods[0].asked)
				hist[i] = append(hist[i], line)
				if len(hist[i]) > 8 {
					hist[i] = hist[i][1:]
				}
				if p.score.Missed > missed[i] {
					missed[i] = p.score.Missed
					fmt.Printf("MISS %s %s\n%s\n", name, p.Name, strings.Join(hist[i], "\n"))
				}
				if w.second > day && k.curve != nil {
					a := &sum[i]
					a.held += held
					a.serving += float64(nr) * least
					nd := p.need(nr)
					a.need += nd
					best := math.Inf(1)
					for m := 1; m < 60; m++ {
						q := p.need(m)
						if q <= 2*float64(m) {
							best = math.Min(best, q)
							break
						}
					}
					a.ideal += best
					s := p.rate
					p.rate = soon.Upper
					a.up += p.need(nr)
					p.rate = s
					rn, ok := needFor(k, p, soon.Upper, soon.Upper)
					rm, _ := needFor(k, p, seen[i].rate, seen[i].rate)
					if ok {
						a.raw += rn
						a.now += rm
						a.marg += rn * (1 + k.state.Margin.Share)
					}
					a.pods += float64(len(p.pods))
					a.ready += float64(nr)
				}
			}
			if w.second > day {
				n++
			}
		}
	}
	tot := acc{}
	fmt.Println("service    held serving need(n) ideal  need@up curve@seen curve@up +margin pods ready missed margin")
	for i, p := range w.places {
		a := sum[i]
		fmt.Printf("%s %s %.2f %.2f %.2f %.2f %.2f %.2f %.2f %.2f %.1f %.1f %v %.3f\n", name, p.Name, a.held/n, a.serving/n, a.need/n, a.ideal/n, a.up/n, a.now/n, a.raw/n, a.marg/n, a.pods/n, a.ready/n, p.score.Missed, tr.of[i].state.Margin.Share)
		tot.held += a.held
		tot.serving += a.serving
		tot.need += a.need
		tot.ideal += a.ideal
		tot.up += a.up
		tot.raw += a.raw
		tot.now += a.now
		tot.marg += a.marg
	}
	f := 24 / n
	fmt.Printf("%s CORE-HOURS held %.0f serving %.0f need(n) %.0f ideal %.0f need@up %.0f curve@seen %.0f curve@up %.0f +margin %.0f missed %v\n", name, tot.held*f, tot.serving*f, tot.need*f, tot.ideal*f, tot.up*f, tot.now*f, tot.raw*f, tot.marg*f, missed)
}

func needFor(k *keeper, p *place, a, b float64) (float64, bool) {
	n, ok := replicas.NeedOf(k.curve, p.Fraction, a, b)
	return n.Round, ok
}

func diagLoad(name string) []float64 {
	b, err := os.ReadFile("/tmp/kdloads/" + name + ".txt")
	if err != nil {
		return load(name)
	}
	return loadText(string(b))
}
